//! Files of dead hosts, and the runs that are lost with them.

use std::fs;

use super::*;
use crate::journal::record::{EndRecord, OpenRecord, PublishedCard, RunEnd, StartRecord};
use crate::recorder::home::JournalHome;
use crate::recorder::volume::Volume;

/// A host that is dead: no process began one clock tick after the machine did.
fn open(continues: Option<&str>) -> OpenRecord {
    let (pid, started) = (std::process::id(), Some(1));
    OpenRecord { pid, started, continues: continues.map(str::to_owned), ..OpenRecord::default() }
}

fn start(volume: &mut Volume, seq: u64) {
    let lines = volume.start_lines(&StartRecord {
        card: PublishedCard { seq, ..PublishedCard::default() },
        ..StartRecord::default()
    });
    volume.write_start(seq, &lines).unwrap();
}

#[test]
fn a_run_that_another_recorder_went_on_with_in_a_new_file_is_not_lost() {
    let home = std::env::temp_dir().join(format!("rexec-repair-{}", std::process::id()));
    let place = JournalHome::of_test(&home);
    let mut before = Volume::begin(&place, "2026-05-21-09:42:18", &open(None)).unwrap();
    (1..=3).for_each(|seq| start(&mut before, seq));
    let mut after = Volume::begin(&place, "2026-05-21-09:42:18", &open(Some(before.name()))).unwrap();
    (2..=3).for_each(|seq| start(&mut after, seq));
    let start = StartRecord { card: PublishedCard { seq: 2, ..PublishedCard::default() }, ..StartRecord::default() };
    let end = EndRecord { start, end: RunEnd { seq: 2, ..RunEnd::default() }, ..EndRecord::default() };
    let lines = after.end_lines(&end);
    after.write_end(2, &lines).unwrap();
    [&before, &after].iter().for_each(|volume| volume.release());

    let mut repairs = Repairs::of(place.clone(), Path::new(""));
    let lost = std::iter::from_fn(|| Some(repairs.step(Instant::now()))).flatten().next().unwrap();
    assert_eq!(lost, 2, "one in each file");
    let lines = |volume: &Volume| fs::read_to_string(volume.path()).unwrap().lines().rev().map(str::to_owned).collect();
    let (old, new): (Vec<String>, Vec<String>) = (lines(&before), lines(&after));
    assert!(
        old[0].contains(r#""type":"close""#) && old[0].contains(&format!(r#""next":"{}""#, after.name())),
        "{old:?}"
    );
    assert!(old[1].contains(r#""type":"lost","seq":1,"#) && old[2].contains(r#""type":"start","seq":3,"#), "{old:?}");
    assert!(new[0].contains(r#""type":"close""#) && !new[0].contains("next"), "{new:?}");
    assert!(new[1].contains(r#""type":"lost","seq":3,"#) && new[2].contains(r#""type":"end","seq":2,"#), "{new:?}");
    fs::remove_dir_all(&home).unwrap();
}
