"""What the run record of the last harvest tells."""
import json

from . import host


def read():
    path = host.WORK / "run.json"
    return json.loads(path.read_text()) if path.exists() else None


def value(quantity):
    return (quantity or {}).get("value")


def told():
    """Figures of the record; none if nothing was harvested."""
    record = read()
    if record is None:
        return {}
    found = {"told": value((record.get("slowdown") or {}).get("share"))}
    for scavenger in record.get("scavengers", [])[:1]:
        found["aboard"] = value((scavenger.get("times") or {}).get("aboard"))
        found["trips"] = sum(trip["count"] for trip in scavenger.get("trips_home", []))
        found["visits"] = value(scavenger.get("visits_home"))
    return found
