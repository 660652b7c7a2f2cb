//! Times of day as text: `time` and `timetz`.

use super::{
    DAY, DtError, Fields, Special, Zone, abbreviated_offset, clock, local_now, scan, take_while,
    zone_of,
};
use crate::error::Result;
use crate::value::timetz::TimeTz;
use crate::value::{DateTimeContext, calendar};

/// `time` input: a date in the text is checked and ignored.
pub fn parse_time(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<i64> {
    let read = || {
        let (time, fields) = read_time_of_day(text, cx)?;
        // A zone whose offset changes needs a date, though it says nothing here.
        if let Some(Zone::Named(tz)) = &fields.zone
            && !fields.has_date()
            && fields.relative.is_none()
        {
            tz.to_fixed_offset().map_err(|_| DtError::Syntax)?;
        }
        Ok(time)
    };
    read().map_err(|e: DtError| e.error("time", text))
}

/// The session's offset from UTC, in seconds to the east, at this time of today.
pub fn offset_today(time: i64, cx: &dyn DateTimeContext) -> Result<i64> {
    // A zone that never changes needs no clock.
    if let Ok(fixed) = cx.time_zone().to_fixed_offset() {
        return Ok(i64::from(fixed.seconds()));
    }
    let today = calendar::utc_to_local(cx.transaction_time()?, cx.time_zone()).0;
    let at = today.div_euclid(DAY) * DAY + time;
    Ok(calendar::local_offset(at, cx.time_zone()))
}

/// `timetz` input: a zone whose offset changes needs a date; without a zone the session's holds, at the date given or
/// today.
pub fn parse_timetz(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<TimeTz> {
    let read = || -> Result<TimeTz, DtError> {
        let (micros, fields) = read_time_of_day(text, cx)?;
        let day = match fields.relative {
            Some(n) => Some(local_now(cx)?.div_euclid(DAY) + n),
            None if fields.has_date() => Some(fields.day()?),
            None => None,
        };
        let moment = day.and_then(|day| day.checked_mul(DAY)?.checked_add(micros));
        let east = match (fields.zone, moment, cx) {
            (Some(Zone::Offset(east)), ..) => east,
            (Some(Zone::Named(tz)), Some(at), _) => calendar::local_offset(at, &tz),
            (Some(Zone::Abbreviated(word, tz)), at, cx) => {
                let at = match (at, cx) {
                    (Some(at), _) => at,
                    (None, Some(cx)) => cx.transaction_time().map_err(|_| DtError::Clock)?,
                    (None, None) => 0,
                };
                abbreviated_offset(at, &word, &tz)
            }
            (Some(Zone::Named(tz)), None, _) => {
                i64::from(tz.to_fixed_offset().map_err(|_| DtError::Syntax)?.seconds())
            }
            (None, Some(at), cx) => calendar::local_offset(at, &zone_of(cx)),
            (None, None, Some(cx)) => offset_today(micros, cx).map_err(|_| DtError::Clock)?,
            (None, None, None) => 0,
        };
        let west = i32::try_from(-east).map_err(|_| DtError::Displacement)?;
        Ok(TimeTz { micros, west })
    };
    read().map_err(|e| e.error("time with time zone", text))
}

/// `T040506`, `040506.789`: a time without colons, and what is behind it, with them.
fn iso_time(text: &str) -> Option<String> {
    let trimmed = text.trim_start();
    let rest = trimmed.strip_prefix(['T', 't']).unwrap_or(trimmed);
    let (digits, behind) = take_while(rest, |b| b.is_ascii_digit());
    if digits.len() != 6 || !(behind.starts_with('.') || rest.len() < trimmed.len()) {
        return None;
    }
    let (hours, rest) = digits.split_at(2);
    let (minutes, seconds) = rest.split_at(2);
    Some(format!("{hours}:{minutes}:{seconds}{behind}"))
}

fn read_time_of_day(
    text: &str,
    cx: Option<&dyn DateTimeContext>,
) -> Result<(i64, Fields), DtError> {
    let spelled = iso_time(text);
    let mut f = scan(spelled.as_deref().unwrap_or(text), cx)?;
    if f.special == Some(Special::Now) {
        return Ok((local_now(cx)?.rem_euclid(DAY), f));
    }
    if f.special.is_some() {
        return Err(DtError::Syntax);
    }
    // A lone number is a time here: 101112, 1011.
    if let (None, None, [(v, digits)]) = (f.time, f.month, f.numbers.as_slice()) {
        let (v, digits) = (*v, *digits);
        f.time = match digits {
            3 | 4 => Some(clock(v / 100, v % 100, 0, 0)?),
            _ => return Err(DtError::Syntax),
        };
        f.numbers.clear();
    } else if let (None, true, [(a, _), (b, _), (c, _)]) =
        (f.time, f.separated, f.numbers.as_slice())
    {
        // Six digits were taken for a date; the year was completed.
        f.time = Some(clock(a % 100, *b, *c, 0)?);
        f.numbers.clear();
    }
    if f.time.is_none() {
        return Err(DtError::Syntax);
    }
    if f.has_date() && f.relative.is_none() {
        f.day()?;
    }
    Ok((f.time_of_day()?, f))
}
