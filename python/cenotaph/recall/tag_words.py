"""Word lists of concept tags: terms that always count, and words that never do. Composed for this project."""

from __future__ import annotations

GLOSSARY = (
    *("backup", "backups", "embedding", "embeddings", "failover", "gateway", "glacier", "gpt", "kv", "network"),
    *("openai", "router", "s3", "vlan"),
    # Spanish, French, German, Portuguese, Italian
    *("copia de seguridad", "enrutador", "red local", "sauvegarde", "routeur", "réseau", "passerelle"),
    *("sicherung", "netzwerk", "roteador", "rede local", "rete locale"),
    # Chinese, Japanese, Korean
    *("备份", "路由器", "网络", "网关", "故障转移", "嵌入", "バックアップ", "ルーター", "ネットワーク"),
    *("ゲートウェイ", "フェイルオーバー", "埋め込み", "백업", "라우터", "네트워크", "게이트웨이", "임베딩"),
)
"""Terms of infrastructure, in lower case."""

_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during few for from further had
hadn't has hasn't have haven't having he her here here's hers herself him himself his how i if in into is isn't it it's
its itself just me more most mustn't my myself no nor not of off on once or other our ours ourselves
out over own same shan't she should shouldn't so some such than that that's the their theirs them themselves then there
there's these they this those through to too under until up us very was wasn't we we're were weren't what what's when
where which while who who's whom why will with won't would wouldn't you you're your yours yourself yourselves via
"""
_SPANISH = """
al algo algunos ante antes como con contra cual cuando de del desde donde durante e el ella ellas ellos en entre era es
esa ese eso esta estaba este esto estos fue ha hay la las le les lo los más me mi mis mucho muy nada ni no nos nosotros
nuestra nuestro o os otra otro para pero poco por porque que quien se ser si sin sobre son su sus también tan te tiene
todo todos tu tus un una uno unos ya yo
"""
_FRENCH = """
au aux avec ce ces cet cette comme dans de des donc du elle elles en est et eux il ils je la le les leur leurs lui ma
mais me mes moi mon ne nos notre nous on ont ou où par pas plus pour qu que qui sa sans se ses si son sont sur ta te tes
toi ton tu un une vos votre vous être
"""
_GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des dich die dies diese
dieser doch dort du durch ein eine einem einen einer eines er es euer für hat hatte ich ihm ihn ihr ihre im in ist ja
kann kein keine mein mich mir mit nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind so über um und uns
unser unter vom von vor war was weil wenn wer wie wir wird zu zum zur
"""
_EAST = """
的 了 和 是 在 我 有 他 这 个 们 来 到 说 要 就 会 也 你 对 能 而 与 及 或 不 都 我们 你们 他们 这个 那个 一个 没有
の に は を が と で も へ や から まで より する した して です ます ない この その あの これ それ こと もの ため よう
은 는 이 가 을 를 의 에 와 과 도 로 으로 하고 에서 그리고 그 저 것 수 등
"""
_DOMAIN = """
agent agents assistant candidate candidates chat claim claims context conversation conversations daily days diary
dream dreaming entry entries file files folder heartbeat history json line lines logs markdown md memories memory
message messages model note notes path prompt prompts query recall reply replies report reports result results score
search session sessions signal signals snippet snippets source status summary system task tasks text time tool
tools topic transcript txt unknown update updates user users workspace yaml yml main every short
"""

STOP_WORDS = frozenset(f"{_ENGLISH} {_SPANISH} {_FRENCH} {_GERMAN} {_EAST} {_DOMAIN}".split())
"""Function words of six languages, and words that every memory is full of."""
