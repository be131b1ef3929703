//! Compares dates and times with a calendar that is advanced day by day, and checks that invalid
//! fields are rejected.

use super::*;

fn text(short: Result<InlineText, WriteError>) -> String {
    String::from_utf8(short.expect("valid").as_bytes().to_vec()).expect("ASCII")
}

const NOON: Time = Time {
    hour: 12,
    minute: 5,
    second: 9,
    nanosecond: 120_000_000,
};
const LEAP: Date = Date {
    year: 2024,
    month: 2,
    day: 29,
};

fn days_of(year: i32, month: u8) -> u8 {
    days_in(month) + u8::from(month == 2 && is_leap(year))
}

#[test]
fn fraction_has_the_stored_precision_and_is_never_cut() {
    for (nanosecond, digits, expected) in [
        (120_000_000, 3, "12:05:09.120"),
        (120_000_000, 6, "12:05:09.120000"),
        (120_000_000, 0, "12:05:09.12"),
        (0, 0, "12:05:09"),
        (1, 9, "12:05:09.000000001"),
    ] {
        let time = Time { nanosecond, ..NOON };
        assert_eq!(text(time.to_short(digits)), expected);
    }
}

#[test]
fn timestamps_carry_the_offset_that_is_stored() {
    let stamp = |offset_minutes| Timestamp {
        date: LEAP,
        time: NOON,
        offset_minutes,
    };
    assert_eq!(text(stamp(None).to_short(3)), "2024-02-29T12:05:09.120");
    assert_eq!(
        text(stamp(Some(0)).to_short(3)),
        "2024-02-29T12:05:09.120+00:00"
    );
    assert_eq!(
        text(stamp(Some(-210)).to_short(3)),
        "2024-02-29T12:05:09.120-03:30"
    );
    assert_eq!(
        stamp(Some(1440)).to_short(3).err(),
        Some(WriteError::NotADate)
    );
}

#[test]
fn days_since_1970_are_those_of_a_calendar_that_is_counted() {
    let mut days = -719_528; // 0000-01-01; `toordinal` counts 719,163 from 0001-01-01.
    for year in 0..=9999 {
        for month in 1..=12 {
            for day in 1..=days_of(year, month) {
                let date = Date { year, month, day };
                assert_eq!(date.to_unix_ms(), Ok(days * MS_PER_DAY), "{date:?}");
                assert_eq!(Date::of_unix_days(days), Some(date));
                assert_eq!(Date::of_unix_days_in_any_year(days), Some(date));
                days += 1;
            }
        }
    }
    let last = Date {
        year: 2024,
        month: 2,
        day: 30,
    };
    assert_eq!(last.to_unix_ms(), Err(WriteError::NotADate));
    for outside in [-719_529, days, i64::MIN / MS_PER_DAY, i64::MAX / MS_PER_DAY] {
        assert_eq!(Date::of_unix_days(outside), None, "{outside}");
    }
}

#[test]
fn instants_of_milliseconds_are_in_utc() {
    for (ms, expected) in [
        (0, "1970-01-01T00:00:00.000+00:00"),
        (-1, "1969-12-31T23:59:59.999+00:00"),
        (1_709_208_309_120, "2024-02-29T12:05:09.120+00:00"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999+00:00"),
    ] {
        let stamp = Timestamp::of_unix_ms(ms).expect("in range");
        assert_eq!(text(stamp.to_short(3)), expected);
        assert_eq!(stamp.to_unix_ms(), Ok(ms));
    }
    assert_eq!(Timestamp::of_unix_ms(253_402_300_800_000), None);
    assert_eq!(Timestamp::of_unix_ms(i64::MIN), None);
    assert_eq!(Timestamp::of_unix_ms(i64::MAX), None);
}

#[test]
fn instants_are_floored_to_milliseconds_and_go_to_utc() {
    let stamp = |year, nanosecond, offset_minutes| Timestamp {
        date: Date { year, ..LEAP },
        time: Time { nanosecond, ..NOON },
        offset_minutes,
    };
    assert_eq!(
        stamp(2024, 1_999_999, None).to_unix_ms(),
        Ok(1_709_208_309_001)
    );
    assert_eq!(
        stamp(2024, 0, Some(330)).to_unix_ms(),
        Ok(1_709_208_309_000 - 19_800_000)
    );
    // Before 1970, fractions are also rounded towards the past.
    let early = Timestamp {
        date: Date {
            year: 1969,
            month: 12,
            day: 31,
        },
        time: Time {
            hour: 23,
            minute: 59,
            second: 59,
            nanosecond: 999_999_999,
        },
        offset_minutes: None,
    };
    assert_eq!(early.to_unix_ms(), Ok(-1));
    assert_eq!(
        stamp(2024, 0, Some(1440)).to_unix_ms(),
        Err(WriteError::NotADate)
    );
    assert_eq!(
        stamp(10_000, 0, None).to_unix_ms(),
        Err(WriteError::YearOutOfRange(10_000))
    );
}

#[test]
fn years_beyond_rfc_3339_are_an_error_of_their_own() {
    for year in [-1, 10_000, i32::MIN, i32::MAX] {
        let error = Date { year, ..LEAP }.to_short().err();
        assert_eq!(error, Some(WriteError::YearOutOfRange(year)));
    }
    assert_eq!(
        text(
            Date {
                year: 0,
                month: 1,
                day: 1
            }
            .to_short()
        ),
        "0000-01-01"
    );
}

#[test]
fn impossible_dates_and_times_are_errors() {
    for (year, month, day) in [
        (2023, 2, 29),
        (1900, 2, 29),
        (2024, 0, 1),
        (2024, 13, 1),
        (2024, 4, 31),
        (0, 0, 0),
    ] {
        let date = Date { year, month, day };
        assert_eq!(
            date.to_short().err(),
            Some(WriteError::NotADate),
            "{date:?}"
        );
    }
    let midnight = Time {
        hour: 24,
        minute: 0,
        second: 0,
        nanosecond: 0,
    };
    assert_eq!(text(midnight.to_short(0)), "24:00:00");
    for time in [
        Time {
            second: 1,
            ..midnight
        },
        Time {
            hour: 25,
            ..midnight
        },
        Time { minute: 60, ..NOON },
        Time { second: 61, ..NOON },
    ] {
        assert_eq!(
            time.to_short(3).err(),
            Some(WriteError::NotADate),
            "{time:?}"
        );
    }
    assert_eq!(NOON.to_short(10).err(), Some(WriteError::NotADate));
}

#[test]
fn an_offset_that_is_not_whole_minutes_is_converted_to_utc() {
    let at = |year, month, day| Date { year, month, day };
    let of = |date, offset_us| Timestamp::with_offset(date, NOON, offset_us);
    let utc = |date: Date, hour, minute, second| {
        let nanosecond = NOON.nanosecond;
        let time = Time {
            hour,
            minute,
            second,
            nanosecond,
        };
        let mut at = date.midnight(Some(0));
        at.time = time;
        Some(at)
    };
    let whole = of(LEAP, -5_400_000_000).expect("it has whole minutes");
    assert_eq!((whole.date, whole.offset_minutes), (LEAP, Some(-90)));
    assert_eq!(of(LEAP, 3_208_000_000), utc(LEAP, 11, 11, 41));
    assert_eq!(of(LEAP, -43_201_000_000), utc(at(2024, 3, 1), 0, 5, 10));
    assert_eq!(
        of(at(1, 1, 1), 43_511_000_000),
        utc(at(0, 12, 31), 23, 59, 58)
    );
    assert_eq!(
        of(at(9999, 12, 31), -43_201_000_000),
        utc(at(10_000, 1, 1), 0, 5, 10)
    );
    let micros = of(LEAP, 1).expect("a microsecond before").time.nanosecond;
    assert_eq!(micros, NOON.nanosecond - 1000);
    assert_eq!(of(at(2023, 2, 29), 1), None);
    assert_eq!(of(LEAP, i64::MAX), None);
}
