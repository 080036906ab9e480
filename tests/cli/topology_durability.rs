//! Refreshes that are killed, crowded, refused by their consumer or out of disk: what is published is always whole.

use hopmap_test_support::{Random, soak, system_tests};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::topology_site::{Plan, Site, Whole};

/// Another machine: a host more or less that answers, other cables, another cost.
fn changed(plan: &Plan, random: &mut Random) -> Plan {
    let mut plan = plan.clone();
    match random.below(4) {
        0 => plan.rails = 3 - plan.rails,
        1 => plan.far += 10.0,
        _ => {
            let host = random.below(plan.hosts.len());
            plan.hosts[host] = !plan.hosts[host];
        }
    }
    plan
}

/// What is published and accepted is complete, and either the previous or the current machine. What was published before may be
/// accepted now.
fn check(site: &Site, before: &[Option<Whole>; 2], plan: &Plan) -> [Option<Whole>; 2] {
    let (current, accepted) = site.sound();
    let name = |whole: &Option<Whole>| whole.as_ref().map(|(entry, _)| entry.clone());
    let is_new =
        |whole: &Option<Whole>| whole.as_ref().is_some_and(|(_, machine)| Site::is_of(machine, plan));
    let [old, old_accepted] = [name(&before[0]), name(&before[1])];
    // A machine that goes back is published as it was accepted, which is of this plan too.
    assert!(name(&current) == old || is_new(&current), "{:?} was {old:?}", name(&current));
    let known = [&old, &old_accepted].contains(&&name(&accepted));
    assert!(known || is_new(&accepted), "{:?} was {old_accepted:?}", name(&accepted));
    [current, accepted]
}

/// Kills at random moments are for a soak: `crash_points` kills at every step, on any machine.
#[test]
fn killed_crowded_and_refused_refreshes_leave_the_old_or_the_new_state() {
    let times = if soak() { 60 } else { 8 };
    let mut random = Random(20_261_122);
    let mut plan = Plan::new(8);
    let site = Site::new(&plan);
    site.refresh(&[]);
    let mut state = check(&site, &[None, None], &plan);
    let (mut killed, mut busy, mut refused) = (0, 0, 0);
    for turn in 0..times {
        if random.below(4) > 0 {
            plan = changed(&plan, &mut random);
            site.set(&plan);
        }
        let consumer = ["true", "exit 1", "sleep 0.05"][random.below(3)];
        let arguments = Site::arguments(&[
            "--quiet",
            "--min-coverage",
            "0",
            "--consumer",
            consumer,
            "--keep-entries",
            "5",
        ]);
        let spawn = || site.sandbox.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = spawn();
        let second = (turn % 3 == 2).then(spawn);
        if soak() && turn % 3 < 2 {
            // Moments spread over a whole refresh, the same ones every time.
            std::thread::sleep(Duration::from_micros(2_000 + random.below(150_000) as u64));
            first.kill().unwrap();
        }
        let children = [Some(first), second];
        for child in children.into_iter().flatten() {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                None => killed += 1,
                Some(75) => busy += 1,
                Some(1) if said.contains("the consumer ended") => refused += 1,
                code => assert_eq!(code, Some(0), "{said}"),
            }
        }
        state = check(&site, &state, &plan);
    }
    eprintln!("{times} times: {killed} killed, {busy} busy, {refused} refused");
    assert!(!soak() || killed > 0 && busy + refused > 0, "nothing was disturbed: {killed} {busy} {refused}");
    let last = site.sandbox.output(&Site::arguments(&["--min-coverage", "0", "--consumer", "true"]));
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    let (current, accepted) = site.sound();
    let (entry, machine) = current.unwrap();
    assert_eq!(accepted.unwrap().0, entry);
    assert!(Site::is_of(&machine, &plan));
    let leftovers = |folder: &str| {
        let entries = std::fs::read_dir(site.sandbox.path().join(folder)).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
    };
    assert_eq!(["pub", "pub/history", "pub/state"].map(leftovers), [0; 3]);
}

/// Inside a mount namespace of its own: the publish folder is a small disk, full but for some pages.
const FULL_DISK: &str = r#"
set -e
mkdir pub
mount -t tmpfs -o size=2m tmpfs pub
refresh() { "$HOPMAP" topology refresh topology.toml -p machine="$1" --publish pub --quiet --store store; }
same() { "$HOPMAP" topology diff pub "$1" --exit-code --quiet; }
refresh old
failed=0
for free in 0 1 2 3 5 8 12 16 24 32 64; do
  rm -f pub/state/filler
  head -c 4M /dev/zero > pub/state/filler 2>/dev/null || true
  size=$(stat -c %s pub/state/filler)
  truncate -s $((size - free * 4096)) pub/state/filler
  if refresh new 2>/dev/null; then
    same new
    rm pub/state/filler; refresh old
  else
    failed=$((failed + 1))
    same old || same new
    rm pub/state/filler
    refresh new; same new
    refresh old
  fi
  same old
  for entry in pub/history/*; do "$HOPMAP" topology diff "$entry" "$entry" --quiet; done
  "$HOPMAP" accept --check pub/current/system --out pub/accepted.json --quiet
done
echo "$failed"
"#;

#[test]
fn a_full_disk_leaves_what_was_published() {
    if !system_tests() {
        return;
    }
    let site = Site::new(&Plan::new(8));
    let folder = site.sandbox.path();
    std::fs::rename(folder.join("machine"), folder.join("old")).unwrap();
    site.set(&Plan { rails: 2, ..Plan::new(8) });
    std::fs::rename(folder.join("machine"), folder.join("new")).unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", FULL_DISK])
        .env("HOPMAP", assert_cmd::cargo::cargo_bin!("hopmap"))
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let failed: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(failed >= 3, "the disk was full {failed} times only");
}
