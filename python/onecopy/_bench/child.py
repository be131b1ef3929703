"""The program of a worker process. It is started by its path, so that neither its folder nor the
current one is searched for modules."""

import sys

if __name__ == "__main__":
    del sys.path[0]
    import json

    # The first line of stdin has the module search path of the parent.
    sys.path[:] = json.loads(sys.stdin.readline())
    from onecopy._bench.worker import main

    main()
