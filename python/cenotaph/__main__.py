"""`python -m cenotaph` is the command line."""

from cenotaph.cli import main

if __name__ == "__main__":
    main()
