//! The edge cases of the peer, one test a row of the table in the specification of `forget` (section 6).
//! Rows 1 to 70, but for those that are not about the scrub. Where a number V... stands, the answer is
//! ours and not the peer's.

#![allow(clippy::unwrap_used)]

mod common;

use cenotaph_core::corpus::read_corpus;
use cenotaph_core::refs::Refs;
use common::{
    E, E2, K, L, S, check, check_with, scan, scrubber, scrubber_for, set, snippets, strings,
};

#[test]
fn row_01_plain_line_below_the_bullet_stays() {
    check(&format!("{E}- secret\nplain\n"), "plain\n", 1, 0);
}

#[test]
fn row_02_lineage_goes_with_the_entry() {
    check(&format!("{L}{E}- secret\n"), "", 1, 0);
}

#[test]
fn row_03_continuation_lines() {
    check(
        &format!("{E}- secret\n  more\n\tstill\n- other\n"),
        "- other\n",
        1,
        0,
    );
}

#[test]
fn row_04_child_after_a_blank_line_v2() {
    check(
        &format!("{E}- secret\n\n  child\n\nplain\n"),
        "\nplain\n",
        1,
        0,
    );
}

#[test]
fn row_05_blank_between_marker_and_bullet_v2() {
    check(&format!("a\n{E}\n- secret\nb\n"), "a\nb\n", 1, 0);
}

#[test]
fn row_06_marker_at_the_end_v11() {
    check(&format!("a\n{}", E.trim_end()), "a\n", 1, 0);
    check(&format!("a\n{E}\n\n"), "a\n\n\n", 1, 0);
}

#[test]
fn row_07_stacked_clean_marker_below_v1() {
    let scrub = check(&format!("{E}{K}- shared\n- next\n"), "- next\n", 2, 0);
    assert_eq!(scrub.stacked, ["clean"]);
}

#[test]
fn row_08_two_selected_markers() {
    let scrub = check(&format!("{E}{E2}- shared\n"), "", 2, 0);
    assert!(scrub.stacked.is_empty());
}

#[test]
fn row_09_stacked_clean_marker_above_v1() {
    let scrub = check(&format!("{K}{E}- shared\n- next\n"), "- next\n", 2, 0);
    assert_eq!(scrub.stacked, ["clean"]);
    check(
        &format!("{K}{L}\n{E}\n- shared\n- next\n"),
        "- next\n",
        2,
        0,
    );
}

#[test]
fn row_10_same_key_twice() {
    check(&format!("{E}- one\nx\n{E}- two\ny\n"), "x\ny\n", 2, 0);
}

#[test]
fn row_11_crlf() {
    let marker = E.trim_end();
    check(
        &format!("a\r\n{marker}\r\n- secret\r\n  more\r\n\r\nb\nc\r\n"),
        "a\r\n\r\nb\nc\r\n",
        1,
        0,
    );
}

#[test]
fn row_12_blanks_in_the_marker() {
    let text = "<!--openclaw-memory-promotion:k1-->\n- one\n  <!--  openclaw-memory-promotion:  k2  -->  \n  - two\nx\n";
    check(text, "x\n", 2, 0);
}

#[test]
fn row_13_text_behind_the_marker() {
    let text = format!("{} text\n- stays\n", E.trim_end());
    let scrub = check(&text, &text, 0, 0);
    assert!(scrub.untraced.is_empty());
}

#[test]
fn row_14_upper_case_marker() {
    let text = "<!-- OPENCLAW-MEMORY-PROMOTION:k1 -->\n- stays\n";
    check(text, text, 0, 0);
}

#[test]
fn row_15_siblings_of_an_indented_entry_stay_v2() {
    check(
        &format!("- parent\n  {E}  - secret\n    more\n  - sibling\n"),
        "- parent\n  - sibling\n",
        1,
        0,
    );
}

#[test]
fn row_16_marker_in_a_code_fence() {
    check(
        &format!("```\n{E}- secret\n```\nafter\n"),
        "```\n```\nafter\n",
        1,
        0,
    );
    check(
        &format!("```\n{E}secret\n```\nafter\n"),
        "```\n```\nafter\n",
        1,
        0,
    );
    check(&format!("```\n{E}```\nafter\n"), "```\n```\nafter\n", 1, 0);
}

#[test]
fn row_17_bom_and_no_break_space_before_the_marker() {
    check(
        &format!("\u{feff}{E}- secret\n\u{a0}{E2}- more\nx\n"),
        "x\n",
        2,
        0,
    );
}

#[test]
fn row_18_heading_below_the_marker_stays_v2() {
    check(&format!("{E}# Heading\nbody\n"), "# Heading\nbody\n", 1, 0);
}

#[test]
fn row_19_fenced_block_goes_whole_v2() {
    check(
        &format!("{E}```sh\nsecret\n\n# code\n```\nafter\n"),
        "after\n",
        1,
        0,
    );
}

#[test]
fn row_20_lazy_continuation_of_a_paragraph_v2() {
    check(
        &format!("{E}secret\nand more\n\nafter\n"),
        "\nafter\n",
        1,
        0,
    );
    check(&format!("{E}- secret\n still\nplain\n"), "plain\n", 1, 0);
}

#[test]
fn row_21_indented_clean_marker_is_not_swallowed_v2() {
    check(
        &format!("{E}- secret\n  {K}  - clean text\n"),
        &format!("  {K}  - clean text\n"),
        1,
        0,
    );
}

#[test]
fn row_22_white_space_line_inside_v2() {
    check(&format!("{E}- secret\n \t \n  child\nx\n"), "x\n", 1, 0);
    check(&format!("{E}- secret\n \t \nx\n"), " \t \nx\n", 1, 0);
}

#[test]
fn row_23_case_of_the_key() {
    let text = "<!-- openclaw-memory-promotion:K1 -->\n- stays\n";
    let scrub = check(text, text, 0, 0);
    assert_eq!(scrub.untraced, ["K1"]);
}

#[test]
fn rows_24_25_keys_without_origin_are_listed() {
    let text =
        "<!-- openclaw-memory-promotion:zz -->\n- a\n<!-- openclaw-memory-promotion:aa -->\n- b\n";
    let scrub = check(text, text, 0, 0);
    assert_eq!(scrub.untraced, ["zz", "aa"]);
}

#[test]
fn row_26_mixed_lineage_goes_whole() {
    check(&format!("{E}- from two sessions\n"), "", 1, 0);
}

#[test]
fn row_27_lineage_that_is_not_adjacent_stays() {
    check(&format!("{L}\n{E}- secret\n"), &format!("{L}\n"), 1, 0);
    check(&format!("{L}x\n{E}- secret\n"), &format!("{L}x\n"), 1, 0);
}

#[test]
fn row_28_empty_key() {
    let text = "<!-- openclaw-memory-promotion: -->\n- stays\n";
    let scrub = check(text, text, 0, 0);
    assert!(scrub.untraced.is_empty());
}

#[test]
fn row_29_key_with_the_end_of_a_comment_in_it() {
    let refs = Refs::new("main", [], []);
    let keys = set(&["a --> b"]);
    let odd = cenotaph_core::scrub::Scrubber::new(refs, keys.clone(), keys, snippets(&[]));
    let text = "<!-- openclaw-memory-promotion:a --> b -->\n- secret\nx\n";
    check_with(&odd, text, "x\n", 1, 0);
}

#[test]
fn row_30_line_that_is_or_holds_a_snippet() {
    check(&format!("a\n{S}\n> \"{S}\" they said\nb\n"), "a\nb\n", 0, 2);
}

#[test]
fn row_31_snippet_over_two_lines_or_in_other_case() {
    let text =
        "User: Please remember\nviolet-mongoose-42.\nUSER: PLEASE REMEMBER VIOLET-MONGOOSE-42.\n";
    check(text, text, 0, 0);
}

#[test]
fn row_31_doubled_blanks_v3() {
    check(
        "a\nUser:  Please  remember violet-mongoose-42.\n",
        "a\n",
        0,
        1,
    );
}

#[test]
fn row_32_quotation_without_label_v3() {
    check("- Please remember violet-mongoose-42.\nx\n", "x\n", 0, 1);
}

#[test]
fn row_33_decomposed_quotation_v3() {
    let composed = scrubber_for(&["User: das Caf\u{e9} an der Ecke schließt"]);
    check_with(
        &composed,
        "das Cafe\u{301} an der Ecke schließt\nx\n",
        "x\n",
        0,
        1,
    );
}

#[test]
fn row_34_twelve_unit_snippet() {
    let short = scrubber_for(&["User: hi mom"]);
    check_with(&short, "Dear User: hi mommy\nhi mom\n", "hi mom\n", 0, 1);
}

#[test]
fn row_35_eleven_unit_text_is_no_snippet() {
    let refs = Refs::new("main", strings(&["target"]), []);
    let found = read_corpus(
        b"[main/sessions/main/target#L2] User: hello\n".as_slice(),
        &refs,
    );
    let found = found.unwrap();
    assert_eq!((found.lines, found.snippets.len()), (1, 0));
}

#[test]
fn row_36_several_snippets_in_one_line_count_once() {
    let two = scrubber_for(&[S, "User: the heron is grey"]);
    check_with(
        &two,
        &format!("{S} / User: the heron is grey\nx\n"),
        "x\n",
        0,
        1,
    );
}

#[test]
fn row_37_snippet_in_a_heading() {
    check(&format!("## {S}\nbody\n"), "body\n", 0, 1);
}

#[test]
fn row_38_snippet_in_the_continuation_of_a_clean_entry() {
    check(
        &format!("{K}- clean\n  {S}\n  rest\n"),
        &format!("{K}- clean\n  rest\n"),
        0,
        1,
    );
}

#[test]
fn row_39_clean_entry_that_is_a_snippet_loses_its_marker_v1() {
    check(&format!("{L}{K}\n- {S}\n- next\n"), "- next\n", 0, 1);
}

#[test]
fn row_40_escaped_copy_v3() {
    check(
        &format!("User: Please remember violet\\-mongoose\\-42\\.\n{S}\nx\n"),
        "x\n",
        0,
        2,
    );
}

#[test]
fn row_41_huge_line() {
    let filler = "long words ".repeat(200_000);
    check(&format!("a\n{filler}{S}{filler}\nb\n"), "a\nb\n", 0, 1);
}

#[test]
fn row_42_empty_file_and_nothing_but_a_snippet() {
    check("", "", 0, 0);
    check(S, "", 0, 1);
}

#[test]
fn row_43_astral_snippet() {
    let emoji = scrubber_for(&["User: 🦉🦉🦉 hoots at night"]);
    check_with(
        &emoji,
        "User: 🦉🦉🦉 hoots at night\nUser: 🦉🦉 hoots\n",
        "User: 🦉🦉 hoots\n",
        0,
        1,
    );
}

#[test]
fn row_44_snippet_inside_another() {
    let nested = scrubber_for(&[
        "User: the red door",
        "User: the red door is locked at night",
    ]);
    check_with(
        &nested,
        "User: the red door is open\nUser: the red door is locked at night\nx\n",
        "x\n",
        0,
        2,
    );
}

#[test]
fn row_45_common_phrase() {
    let common = scrubber_for(&["User: thanks a lot"]);
    check_with(
        &common,
        "User: thanks a lot, bye\nthanks a lot\n",
        "thanks a lot\n",
        0,
        1,
    );
}

#[test]
fn row_46_table_row() {
    check(
        &format!("| a | b |\n|---|---|\n| {S} | c |\n| d | e |\n"),
        "| a | b |\n|---|---|\n| d | e |\n",
        0,
        1,
    );
}

#[test]
fn row_47_tab_inside_a_snippet() {
    let tab = scrubber_for(&["User: a\tb c d e"]);
    check_with(
        &tab,
        "User: a\tb c d e\nUser: a b c d e\n",
        "User: a b c d e\n",
        0,
        1,
    );
}

#[test]
fn row_48_other_line_separators_break_no_line() {
    for separator in ["\r", "\u{2028}", "\u{c}"] {
        check(&format!("a{separator}{S}{separator}b\nc\n"), "c\n", 0, 1);
    }
}

#[test]
fn row_49_nul_stays() {
    check(&format!("a\0b\n{E}- secret\0\n\0c\n"), "a\0b\n\0c\n", 1, 0);
}

#[test]
fn row_50_heading_with_a_session_key() {
    check(
        "## Session: agent:main:target\nsecret\n### more\nsecret\n## Next\nx\n",
        "## Next\nx\n",
        1,
        0,
    );
}

#[test]
fn row_51_session_id_in_a_heading() {
    check("# Session ID: target\nsecret\n# Next\n", "# Next\n", 1, 0);
    check("# session id: target\nsecret\n# Next\n", "# Next\n", 1, 0);
}

#[test]
fn row_52_hook_note_v6() {
    check(
        "# Session: 2026-11-20 09:15 UTC\n\n- **Session Key**: agent:main:tele:9\n- **Session ID**: target\n- **Source**: telegram\n\n## Conversation Summary\n\nuser: secret\nassistant: more\n",
        "",
        1,
        0,
    );
}

#[test]
fn row_53_paragraph_that_names_the_session() {
    check(
        "x\n\nSession ID: target and so on\nsecret\n\nmore\n# Next\n",
        "x\n\n# Next\n",
        1,
        0,
    );
    check(
        "Session ID: target\nsecret\nSession ID: other\ny\n",
        "Session ID: other\ny\n",
        1,
        0,
    );
    check("x\nSession ID: target\nsecret", "x\n", 1, 0);
}

#[test]
fn row_54_bullet_row_with_deeper_lines() {
    check(
        "- Session ID: target; note\n  detail\n- other\n",
        "- other\n",
        1,
        0,
    );
    check(
        "- a\n  * Session ID: target; note\n    detail\n  * b\n",
        "- a\n  * b\n",
        1,
        0,
    );
}

#[test]
fn row_55_detail_after_a_blank_line_v2() {
    check(
        "- Session ID: target; x\n\n  detail\n\nplain\n",
        "\nplain\n",
        1,
        0,
    );
    check("- Session ID: target; x\n\nplain\n", "\nplain\n", 1, 0);
}

#[test]
fn row_56_numbered_row_is_a_paragraph() {
    check(
        "1. Session ID: target\n2. other\n# Next\n",
        "# Next\n",
        1,
        0,
    );
}

#[test]
fn row_57_first_level_heading_takes_all_below() {
    check("# Session ID: target\n## a\n### b\ntext\n", "", 1, 0);
}

#[test]
fn row_58_other_ids() {
    for id in ["target-2", "target.", "target,", "TARGET", "atarget"] {
        let text = format!("# Session ID: {id}\nx\n");
        check(&text, &text, 0, 0);
    }
    check("# Session ID: target; x\nsecret\n", "", 1, 0);
}

#[test]
fn row_59_transcript_file_names() {
    check("# see sessions/main/target.jsonl\nsecret\n", "", 1, 0);
    check(
        "# main:target.jsonl.reset.2026-11-18T09-00-00.000Z.00112233445566778899aabbccddeeff.zst\nsecret\n",
        "",
        1,
        0,
    );
    let plain = "# Session ID: target.jsonl\nx\n";
    check(plain, plain, 0, 0);
}

#[test]
fn row_60_what_may_stand_before_a_reference() {
    check("# [main:target]\nsecret\n", "", 1, 0);
    for heading in [
        "(sessions/main/target)",
        "domain:target",
        "\"main:target\"",
        "other:target",
    ] {
        let text = format!("# {heading}\nx\n");
        check(&text, &text, 0, 0);
    }
}

#[test]
fn row_61_comment_in_a_fence_does_not_end_the_section_v6() {
    check(
        "## Session: agent:main:target\n```sh\n# comment\nsecret\n```\nsecret\n## Next\n",
        "## Next\n",
        1,
        0,
    );
}

#[test]
fn row_61_section_inside_a_fence() {
    check(
        "```\n# agent:main:target\nsecret\n## more\n# other\nkept\n```\nafter\n",
        "```\n# other\nkept\n```\nafter\n",
        1,
        0,
    );
    check(
        "```\n# agent:main:target\nsecret\n```\nsecret\n# Next\n",
        "```\n```\n# Next\n",
        1,
        0,
    );
}

#[test]
fn row_62_what_is_no_heading() {
    for text in [
        "agent:main:target\n=====\nx\n",
        "####### agent:main:target\nx\n",
        " # agent:main:target\nx\n",
        "#agent:main:target\nx\n",
    ] {
        check(text, text, 0, 0);
    }
    check(
        "# agent:main:target\nx\n#no heading\n # nor this\n# Next\n",
        "# Next\n",
        1,
        0,
    );
}

#[test]
fn row_63_session_id_of_a_survivor_ends_the_section() {
    check(
        "# agent:main:target\nsecret\nSession ID: survivor\nkept\n",
        "Session ID: survivor\nkept\n",
        1,
        0,
    );
}

#[test]
fn row_64_clean_entry_inside_a_section() {
    let scrub = check(
        &format!("# agent:main:target\n{K}- clean\n# Next\n"),
        "# Next\n",
        1,
        0,
    );
    assert!(scrub.stacked.is_empty());
}

#[test]
fn row_64_selected_and_unknown_markers_inside_a_section() {
    let text = format!(
        "# agent:main:target\n{E}- x\n<!-- openclaw-memory-promotion:lost -->\n- y\n# Next\n"
    );
    let scrub = check(&text, "# Next\n", 1, 0);
    assert_eq!(scrub.untraced, ["lost"]);
}

#[test]
fn row_65_plain_line_with_a_session_key() {
    let text = "a line about agent:main:target\nsessions/main/target\n";
    check(text, text, 0, 0);
}

#[test]
fn row_66_last_section_keeps_the_newline_before_it_v11() {
    check("x\n\n## agent:main:target\nsecret", "x\n\n", 1, 0);
}

#[test]
fn row_67_old_highlights_are_refused() {
    let text = "## Memory Consolidation History\r\n\n- 2026-10-02\n  - `- an old excerpt`\n";
    let scrub = check(text, text, 0, 0);
    assert!(scrub.history_refused);
    let scrub = check(
        "  - `+ before`\n## Memory Consolidation History\n",
        "  - `+ before`\n## Memory Consolidation History\n",
        0,
        0,
    );
    assert!(!scrub.history_refused);
}

#[test]
fn row_67_removed_highlights_are_not_refused() {
    let text =
        format!("## Memory Consolidation History\n\n- day\n{E}  - `+ secret`\n  - `+ {S}`\n");
    let scrub = check(&text, "## Memory Consolidation History\n\n- day\n", 1, 1);
    assert!(!scrub.history_refused);
    let note =
        "# Note\n## Memory Consolidation History\n  - `+ x`\n# Other\n- **Session ID**: target\n";
    assert!(scan(&scrubber(), note.as_bytes()).1.history_refused);
    let note = "## Memory Consolidation History\n  - `+ x`\n- **Session ID**: target\n";
    assert!(!scan(&scrubber(), note.as_bytes()).1.history_refused);
}

#[test]
fn row_68_highlights_with_markers() {
    check(
        &format!("## Memory Consolidation History\n{E}- `+ secret`\n{K}- `- kept`\n"),
        &format!("## Memory Consolidation History\n{K}- `- kept`\n"),
        1,
        0,
    );
}

#[test]
fn row_69_invalid_utf8_is_kept_v11() {
    let text = [
        b"\xff\xfe a\n".as_slice(),
        E.as_bytes(),
        b"- \xc3\n\x80b\xff",
    ]
    .concat();
    let (kept, scrub) = scan(&scrubber(), &text);
    assert_eq!(kept, b"\xff\xfe a\n\x80b\xff");
    assert_eq!(scrub.entries, 1);
}

#[test]
fn row_70_utf16_is_not_matched() {
    let text: Vec<u8> = format!("{E}- secret {S}\n")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let (kept, scrub) = scan(&scrubber(), &text);
    assert_eq!((kept, scrub.removed), (text, vec![]));
}
