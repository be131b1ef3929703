"""Documents in the shape of those in three common JSON benchmarks: a page of search results, a
catalogue of events, a feed of events.

Structure, keys, repetition, proportion of text and size are those of the originals; the values are
generated.
"""

from __future__ import annotations

import json
import random
from typing import Any

_HAN = "日本東京都大阪語文人生年月時間今日明日学校電車朝夜雨風空海山川花鳥"
_KANA = "".join(map(chr, range(0x3042, 0x3093))) * 2
_WORDS = [
    "alpha",
    "river",
    "stone",
    "light",
    "house",
    "garden",
    "paper",
    "window",
    "market",
    "bridge",
    "silver",
    "north",
    "harbour",
    "winter",
    "copper",
    "signal",
]
_FRENCH = [
    "Été",
    "Forêt",
    "Crème",
    "Théâtre",
    "Opéra",
    "Ballet",
    "Musée",
    "Château",
    "Fenêtre",
    "Hôtel",
    "Chœur",
    "Récital",
    "Nuit",
    "Lumière",
    "Voix",
    "Jardin",
]


def _time(draw: random.Random) -> str:
    return (
        f"Sun Aug {draw.randint(1, 31):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:"
        f"{draw.randint(0, 59):02} +0000 2014"
    )


def _hex(draw: random.Random, n: int) -> str:
    return f"{draw.getrandbits(4 * n):0{n}x}"


def _japanese(draw: random.Random, shortest: int, longest: int) -> str:
    n = draw.randint(shortest, longest)
    text = "".join(draw.choices(_KANA + _HAN * 2 + "、。！", k=n))
    if draw.random() < 0.4:
        at = draw.randrange(n)
        text = text[:at] + "\n" + text[at:]
    return text


def _picture(draw: random.Random, host: str) -> str:
    return f"{host}/profile_images/{draw.randrange(10**18)}/{_hex(draw, 8)}_normal.jpeg"


def _user(draw: random.Random) -> dict[str, Any]:
    number = draw.randrange(10**9, 3 * 10**9)
    described = _japanese(draw, 20, 150) if draw.random() < 0.9 else ""
    picture = _picture(draw, "pbs.example.com")
    return {
        "id": number,
        "id_str": str(number),
        "name": _japanese(draw, 2, 14),
        "screen_name": draw.choice(_WORDS) + _hex(draw, 4),
        "location": _japanese(draw, 2, 8) if draw.random() < 0.4 else "",
        "description": described,
        "url": f"http://t.example/{_hex(draw, 10)}" if draw.random() < 0.3 else None,
        "entities": {"description": {"urls": []}},
        "protected": False,
        "followers_count": draw.randrange(5000),
        "friends_count": draw.randrange(2000),
        "listed_count": draw.randrange(60),
        "created_at": _time(draw),
        "favourites_count": draw.randrange(9000),
        "utc_offset": draw.choice((None, 32400, 32400, -36000)),
        "time_zone": draw.choice((None, "Tokyo", "Hawaii", "Irkutsk")),
        "geo_enabled": draw.random() < 0.2,
        "verified": False,
        "statuses_count": draw.randrange(100_000),
        "lang": "ja",
        "contributors_enabled": False,
        "is_translator": False,
        "is_translation_enabled": False,
        "profile_background_color": "C0DEED",
        "profile_background_image_url": f"http://abs.example.com/images/themes/theme{draw.randint(1, 19)}/bg.png",
        "profile_background_image_url_https": "https://abs.example.com/images/themes/theme1/bg.png",
        "profile_background_tile": draw.random() < 0.3,
        "profile_image_url": "http://" + picture,
        "profile_image_url_https": "https://" + picture,
        "profile_banner_url": f"https://pbs.example.com/profile_banners/{number}/{draw.randrange(10**10)}",
        "profile_link_color": "0084B4",
        "profile_sidebar_border_color": draw.choice(("C0DEED", "FFFFFF")),
        "profile_sidebar_fill_color": "DDEEF6",
        "profile_text_color": "333333",
        "profile_use_background_image": True,
        "default_profile": draw.random() < 0.6,
        "default_profile_image": False,
        "following": False,
        "follow_request_sent": False,
        "notifications": False,
    }


def _status(draw: random.Random, again: float) -> dict[str, Any]:
    number = draw.randrange(5 * 10**17, 6 * 10**17)
    sent = {
        "metadata": {"result_type": "recent", "iso_language_code": "ja"},
        "created_at": _time(draw),
        "id": number,
        "id_str": str(number),
        "text": f"@{draw.choice(_WORDS)} " * (draw.random() < 0.5) + _japanese(draw, 60, 130),
        "source": (
            f'<a href="http://{draw.choice(_WORDS)}.example.com/download" rel="nofollow">{draw.choice(_WORDS)}</a>'
        ),
        "truncated": False,
        "in_reply_to_status_id": None,
        "in_reply_to_status_id_str": None,
        "in_reply_to_user_id": None,
        "in_reply_to_user_id_str": None,
        "in_reply_to_screen_name": None,
        "user": _user(draw),
        "geo": None,
        "coordinates": None,
        "place": None,
        "contributors": None,
    }
    if draw.random() < again:
        sent["retweeted_status"] = _status(draw, 0)
    mentions = [
        {
            "screen_name": draw.choice(_WORDS) + _hex(draw, 3),
            "name": _japanese(draw, 2, 12),
            "id": draw.randrange(10**9),
            "id_str": str(draw.randrange(10**9)),
            "indices": [draw.randrange(20), draw.randrange(20, 140)],
        }
        for _ in range(draw.choice((0, 1, 1, 2)))
    ]
    media = [
        {
            "id": number + 1,
            "id_str": str(number + 1),
            "indices": [30, 52],
            "media_url": f"http://pbs.example.com/media/{_hex(draw, 15)}.jpg",
            "media_url_https": f"https://pbs.example.com/media/{_hex(draw, 15)}.jpg",
            "url": f"http://t.example/{_hex(draw, 10)}",
            "display_url": f"pic.example.com/{_hex(draw, 10)}",
            "expanded_url": f"http://example.com/{draw.choice(_WORDS)}/status/{number}/photo/1",
            "type": "photo",
            "sizes": {
                size: {"w": w, "h": w * 3 // 4, "resize": "fit"}
                for size, w in (("medium", 600), ("small", 340), ("thumb", 150), ("large", 1024))
            },
        }
    ] * (draw.random() < 0.2)
    entities: dict[str, Any] = {"hashtags": [], "symbols": [], "urls": [], "user_mentions": mentions}
    if media:
        entities["media"] = media
    return sent | {
        "retweet_count": draw.randrange(1000),
        "favorite_count": draw.randrange(100),
        "entities": entities,
        "favorited": False,
        "retweeted": False,
        "possibly_sensitive": False,
        "lang": "ja",
    }


def search_results() -> dict[str, Any]:
    """A document like twitter.json: a hundred statuses, most of which contain another status.

    A third of the bytes are Japanese.
    """
    draw = random.Random(40)
    statuses = [_status(draw, 0.65) for _ in range(100)]
    return {
        "statuses": statuses,
        "search_metadata": {
            "completed_in": 0.087,
            "max_id": 505874924095815681,
            "max_id_str": "505874924095815681",
            "next_results": "?max_id=505874847260352512&q=%E4%B8%80&count=100&include_entities=1",
            "query": "%E4%B8%80",
            "refresh_url": "?since_id=505874924095815681&q=%E4%B8%80&include_entities=1",
            "count": 100,
            "since_id": 0,
            "since_id_str": "0",
        },
    }


def catalogue() -> dict[str, Any]:
    """A document like citm_catalog.json: performances with prices and areas of seats.

    It has many small dicts, numbers and keys, and little text.
    """
    draw = random.Random(41)
    names = [f"{draw.choice(_FRENCH)} {draw.choice(_FRENCH)} - {draw.choice(_WORDS)}" for _ in range(200)]
    areas = [205705993 + k for k in range(17)]
    categories = [338937235 + k for k in range(64)]
    topics = [324846098 + k for k in range(23)]
    events = {
        str(138586341 + 1000 * k): {
            "description": None,
            "id": 138586341 + 1000 * k,
            "logo": f"/images/UE0AAAAACEKo{_hex(draw, 6)}" if draw.random() < 0.6 else None,
            "name": draw.choice(names),
            "subTopicIds": draw.sample(topics, draw.randint(2, 5)),
            "subjectCode": None,
            "subtitle": None,
            "topicIds": draw.sample(topics, draw.randint(2, 4)),
        }
        for k in range(184)
    }
    performances = []
    for k in range(243):
        chosen = draw.sample(categories, draw.choice((1, 1, 3, 5, 7)))
        performances.append(
            {
                "eventId": int(draw.choice(list(events))),
                "id": 339887544 + 1000 * k,
                "logo": f"/images/UE0AAAAACEKo{_hex(draw, 6)}" if draw.random() < 0.5 else None,
                "name": None,
                "prices": [
                    {
                        "amount": draw.randrange(10_000, 200_000, 250),
                        "audienceSubCategoryId": 337100890,
                        "seatCategoryId": category,
                    }
                    for category in chosen
                ],
                "seatCategories": [
                    {
                        "areas": [
                            {"areaId": area, "blockIds": []}
                            for area in draw.sample(areas, draw.choice((5, 11, 15, 17)))
                        ],
                        "seatCategoryId": category,
                    }
                    for category in chosen
                ],
                "seatMapImage": None,
                "start": draw.randrange(1_372_000_000_000, 1_399_000_000_000, 900_000),
                "venueCode": "PLEYEL_PLEYEL",
            }
        )
    return {
        "areaNames": {str(area): f"{draw.choice(_FRENCH)} {k}" for k, area in enumerate(areas)},
        "audienceSubCategoryNames": {"337100890": "Abonné"},
        "blockNames": {},
        "events": events,
        "performances": performances,
        "seatCategoryNames": {str(category): f"Catégorie {k}" for k, category in enumerate(categories)},
        "subTopicNames": {str(topic): draw.choice(_FRENCH) for topic in topics},
        "subjectNames": {},
        "topicNames": {str(topic): draw.choice(_FRENCH) for topic in topics[:4]},
        "topicSubTopics": {str(topic): draw.sample(topics, 5) for topic in topics[:4]},
        "venueNames": {"PLEYEL_PLEYEL": "Salle Pleyel"},
    }


def feed() -> list[dict[str, Any]]:
    """A document like github_events.json: thirty events of a few kinds.

    It has long ASCII strings: addresses, digests and messages.
    """
    draw = random.Random(42)
    events = []
    for k in range(30):
        login, repository = draw.choice(_WORDS) + _hex(draw, 3), f"{draw.choice(_WORDS)}/{draw.choice(_WORDS)}-js"
        number = draw.randrange(10**7)
        api = f"https://api.example.com/repos/{repository}"
        kind = draw.choice(("PushEvent", "PushEvent", "PushEvent", "WatchEvent", "IssueCommentEvent", "CreateEvent"))
        user = {
            "gravatar_id": _hex(draw, 32),
            "login": login,
            "avatar_url": (
                f"https://secure.example.com/avatar/{_hex(draw, 32)}?d=https://a248.example.net/assets/user-420.png"
            ),
            "url": f"https://api.example.com/users/{login}",
            "id": number,
        }
        payload: dict[str, Any]
        if kind == "PushEvent":
            payload = {
                "commits": [
                    {
                        "url": f"{api}/commits/{_hex(draw, 40)}",
                        "message": " ".join(draw.choices(_WORDS, k=draw.randint(3, 40))) + "\n" * draw.randint(0, 1),
                        "distinct": True,
                        "sha": _hex(draw, 40),
                        "author": {"email": f"{login}@example.com", "name": login.title()},
                    }
                    for _ in range(draw.choice((1, 1, 2, 5)))
                ],
                "distinct_size": 1,
                "ref": "refs/heads/master",
                "push_id": draw.randrange(10**9),
                "head": _hex(draw, 40),
                "before": _hex(draw, 40),
                "size": 1,
            }
        elif kind == "IssueCommentEvent":
            links = ("url", "labels_url", "comments_url", "events_url", "html_url")
            payload = {
                "issue": {name: f"{api}/issues/{number % 900}/{name}" for name in links}
                | {
                    "user": user,
                    "assignee": None,
                    "milestone": None,
                    "title": " ".join(draw.choices(_WORDS, k=7)),
                    "body": "\r\n".join(" ".join(draw.choices(_WORDS, k=12)) for _ in range(draw.randint(2, 20))),
                    "comments": 11,
                    "number": number % 900,
                    "state": "open",
                    "labels": [{"url": f"{api}/labels/bug", "name": "bug", "color": "fc2929"}],
                },
                "comment": {
                    "user": user,
                    "url": f"{api}/issues/comments/{number}",
                    "id": number,
                    "body": "\r\n> ".join(" ".join(draw.choices(_WORDS, k=15)) for _ in range(draw.randint(1, 8))),
                    "created_at": "2013-01-10T07:58:29Z",
                    "updated_at": "2013-01-10T07:58:29Z",
                },
                "action": "created",
            }
        elif kind == "CreateEvent":
            payload = {
                "description": " ".join(draw.choices(_WORDS, k=9)),
                "master_branch": "master",
                "ref": None,
                "ref_type": "repository",
            }
        else:
            payload = {"action": "started"}
        events.append(
            {
                "type": kind,
                "created_at": "2013-01-10T07:58:30Z",
                "actor": user,
                "repo": {"url": api, "id": number + k, "name": repository},
                "public": True,
                "payload": payload,
                "id": str(1652857000 + k),
            }
        )
    return events


def indented(document: Any, by: int) -> bytes:
    """The document as indented JSON in UTF-8, as such files are usually stored."""
    return json.dumps(document, indent=by, ensure_ascii=False).encode()
