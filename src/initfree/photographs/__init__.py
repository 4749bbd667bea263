"""From a folder of photographs, or a video, to a COLMAP database of verified matches: pycolmap extracts and matches.

The database is kept, used again and completed: a run that was interrupted continues. It is then read as any other.

    import initfree
    from initfree import photographs

    photographs.match("photos", "out/database.db")
    result = initfree.solve(initfree.load("out/database.db"))
"""

from initfree.photographs.database import match
from initfree.photographs.files import is_photographs, is_video
from initfree.photographs.settings import Matching
from initfree.photographs.video import frames_of

__all__ = ["Matching", "frames_of", "is_photographs", "is_video", "match"]
