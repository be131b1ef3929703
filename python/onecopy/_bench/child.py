"""The program that a worker process runs. It is started by its path, in such a way that Python
searches neither the program's folder nor the current one for modules."""

import sys

if __name__ == "__main__":
    del sys.path[0]
    import json

    # The first line of stdin has the module search path of the parent.
    sys.path[:] = json.loads(sys.stdin.readline())
    from onecopy._bench.worker import main

    main()
