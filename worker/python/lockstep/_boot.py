"""What an agent starts: python -u -m lockstep._boot SCRIPT ARGS. The script takes this module's place
as __main__, so nothing else stands here."""
from lockstep._script import start_main

start_main()
