use hopmap_test_support::given_data;
use proptest::prelude::*;

use super::*;

fn hosts(text: &str) -> Hosts {
    expand(text).unwrap_or_else(|error| panic!("{text}: {error}")).hosts
}

fn named(names: &[&str], slots: Option<u32>) -> Hosts {
    names.iter().map(|name| ((*name).to_owned(), slots)).collect()
}

#[test]
fn the_forms_of_all_launchers_are_read() {
    assert_eq!(
        hosts("# free\nnode[01-02]\n\nn7,n8 n9 # three\n"),
        named(&["node01", "node02", "n7", "n8", "n9"], None)
    );
    for text in [
        "a slots=4 max_slots=8\nb  slots=4\n",
        "a slots = 4\nb slots= 4 max-slots =8 // comment\n",
        "a cpu=4\nb count=4 port=22\n",
        "a max-slots=4\nb cpu_max=4\n",
        "joe@a slots=4\nann@b slots=4 username=joe\n",
        "a:4 ifhn=ib0\nb:4 binding=map=0,1\n",
        "\u{feff}a:4,b:4\r\n",
        "a,b slots=4\n",
        "a port=22 slots=4\nb slots=4 port=22\n",
        "a 4\nb 4\n",
        "a 4 b 4 \n",
        "4*a:4*b",
        "4*a,4*b\n",
        "HOSTS\na:4\nHOSTS\nb:4\n",
        "a 2 all.q@a UNDEFINED\nb 4 all.q@b <NULL>\na 2 long.q@a 0,0:0,1\n",
        "a 4 node.q UNDEFINED\nb 4 all.q@b\n",
        "a\na\nb\na\na\nb\nb\nb",
    ] {
        assert_eq!(hosts(text), named(&["a", "b"], Some(4)), "{text}");
    }
    assert_eq!(hosts("a:4\nb[1-2]:4\nx[1,3] 4"), named(&["a", "b1", "b2", "x1", "x3"], Some(4)));
    assert_eq!(hosts(" \n"), []);
    assert_eq!(hosts("head port=22\na, b , c\n"), named(&["head", "a", "b", "c"], None));
    let slots = |text: &str| hosts(text).into_iter().map(|(_, slots)| slots).collect::<Vec<_>>();
    // A file with a line for every slot has one line for a host with one slot, but with attributes that is not known.
    assert_eq!(slots("a\na\nb\n"), [Some(2), Some(1)]);
    assert_eq!(slots("a\na\nb\nc slots=4\n"), [Some(2), None, Some(4)]);
    assert_eq!(slots("a:2\nb:1\na:2\n"), [Some(4), Some(1)]);
}

#[test]
fn addresses_are_hosts() {
    let names = ["::1", "fe80:0::1", "2001:db8::7", "10.0.0.1"];
    let text = "::1 slots=2\njoe@fe80:0::1 slots=2\n[2001:db8::7]:2\n10.0.0.1:2\n";
    assert_eq!(hosts(text), named(&names, Some(2)));
    assert_eq!(hosts("10.0.0.1 10.0.0.[2-3]\n10.0.0.4,a 10.0.0.5\n").len(), 6);
    assert_eq!(hosts("10.0.0.1 10.0.0.2 slots=3\n"), named(&["10.0.0.1", "10.0.0.2"], Some(3)));
    assert_eq!(hosts("fe80::[1-2]\n"), named(&["fe80::1", "fe80::2"], None));
    assert!(expand("a:b:2\n").is_err());
}

/// Numbers were hosts, and those of `a:4,b:2` parts of names.
#[test]
fn lists_have_slots_where_they_are_given() {
    let list = |text: &str| expand_list(text).unwrap();
    assert_eq!(list("n1 8 n2 8"), named(&["n1", "n2"], Some(8)));
    assert_eq!(list("a:2,b[1,2]:2"), named(&["a", "b1", "b2"], Some(2)));
    assert_eq!(list("n[1-2],n1 m"), named(&["n1", "n2", "n1", "m"], None));
    // All names of a machine may be numbers.
    assert_eq!(list("0,12"), named(&["0", "12"], None));
    assert_eq!(list(""), []);
}

/// `echo $LSB_HOSTS` was refused, and hosts without a number of LSF had no slots.
#[test]
fn words_of_the_only_line_are_hosts() {
    let file = expand("# list\nalpha beta\n").unwrap();
    assert_eq!(file.hosts, named(&["alpha", "beta"], None));
    assert_eq!(file.remarks, ["its words are taken for the names of 2 hosts"]);
    assert_eq!(hosts("a a b b\n"), named(&["a", "b"], Some(2)));
    for text in ["2*a\nb\n", "2*a:b"] {
        assert_eq!(hosts(text), [("a".to_owned(), Some(2)), ("b".to_owned(), Some(1))], "{text}");
    }
}

/// As Open MPI 4.1 counts them.
#[test]
fn a_line_without_slots_adds_one() {
    assert_eq!(hosts("a slots=4\na\n"), named(&["a"], Some(5)));
    assert_eq!(hosts("a\nb\na\n"), [("a".to_owned(), Some(2)), ("b".to_owned(), Some(1))]);
    for (text, slots) in [
        ("a slots=4\na max_slots=8\n", 5),
        ("a\na max_slots=8\n", 2),
        ("a max_slots=8\na\n", 9),
        ("a max_slots=8\na max_slots=9\n", 9),
        ("a slots=0\na\n", 1),
        ("b slots=0\na slots=2\n", 2),
    ] {
        assert_eq!(hosts(text), named(&["a"], Some(slots)), "{text}");
    }
}

#[test]
fn banners_and_words_of_shells_are_no_hosts() {
    let rule = "-".repeat(74);
    let text =
        format!("Killed by signal 15.\nn1\n{rule}\nWARNING: a b\n\n  Local host:   n1\n{rule}\nn2\nlogout\n");
    let file = expand(&text).unwrap();
    assert_eq!(file.hosts, named(&["n1", "n2"], None));
    assert!(
        file.remarks[0].starts_with("lines of other programs, skipped: 6, the first in line 1"),
        "{:?}",
        file.remarks
    );
}

/// They were left out without a word.
#[test]
fn hosts_without_slots_are_named() {
    let file = expand("# $ cat hosts\n$ cat hosts\na slots=2 max_slots=99999999999\nb slots=0\nc slots=0\n")
        .unwrap();
    assert_eq!(file.hosts, named(&["a"], Some(2)));
    assert_eq!(
        file.remarks,
        [
            "lines of other programs, skipped: 1, the first in line 2: `$ cat hosts`",
            "2 hosts with `slots=0`, left out, the first in line 4: `b`"
        ]
    );
}

/// A header was a host, and so was a rule.
#[test]
fn headers_and_rules_are_no_hosts() {
    for text in [
        "Hostname\nn1\nn2\n",
        "Nodes\nn1\nn2\nNodes\n",
        "hosts\nn1:4\nn2:4\n",
        "NODES\nn1\n-----\nn2\n=====\n",
    ] {
        let file = expand(text).unwrap();
        let names: Vec<&str> = file.hosts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n1", "n2"], "{text}");
        assert!(file.remarks[0].starts_with("lines of other programs, skipped: "), "{:?}", file.remarks);
    }
    assert_eq!(hosts("master\nworker1\nworker2\n").len(), 3);
    assert_eq!(hosts("alpha slots=4\nbeta slots=4\ngamma slots=8\n").len(), 3);
    assert_eq!(hosts("master slots=8\nn1 slots=4\nn2 slots=4\n").len(), 3);
    let said = expand("n1\nn2\ndone\n").unwrap().remarks;
    assert_eq!(said, ["`done` in line 3 is taken for a host, although the names of all others have numbers"]);
}

/// In a launch file of hopmap, a host of that name was a line of a shell.
#[test]
fn hosts_of_launch_files_have_any_name() {
    let file = expand("# hopmap mapping 12\nexit\nlogout:2\nn1\n").unwrap();
    let names: Vec<&str> = file.hosts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, file.remarks.len()), (vec!["exit", "logout", "n1"], 0));
    assert_eq!(hosts("# hopmap mapping 12\nKilled\nn1\nn2\n").len(), 3);
    // That of Flux.
    assert_eq!(hosts("Killed\nn1\nn2\n# hopmap mapping 12\n").len(), 3);
}

#[test]
fn faults_are_named_with_their_line() {
    let message = |text: &str| expand(text).unwrap_err().to_string();
    assert_eq!(message("a\nn[2\n"), "host list, line 2, column 2: unclosed bracket");
    for (text, fault) in [
        ("a slots=99999999999", "column 3: `99999999999` is not a number of slots"),
        ("a slots=four", "column 3: `four` is not a number of slots"),
        ("a:0", "column 1: `0` is not a number of slots"),
        ("a slots = 4 slots=4", "column 13: the slots of the host are given twice"),
        ("a:1 slots=2", "column 1: the slots of the host are given twice"),
        ("a slots=4 max-slots=2", "column 11: the host has 4 slots, but at most 2"),
        ("a max_slots=2 max-slots=4", "column 15: the slots of the host are given twice"),
        (
            "a slots=4\nb\n a slots=4",
            "line 3, column 2: `a` is also on line 1, and its slots are given again",
        ),
        ("a\na slots=4", "line 2, column 1: `a` is also on line 1, and its slots are given again"),
        ("n1\n\nn1.cluster.org", "line 3, column 1: `n1.cluster.org` and `n1` of line 1 are one host"),
        ("m:2 n1.x:2\nn1.y:2\nn1:2", "line 3, column 1: `n1` and `n1.x` of line 1 are one host"),
        ("a slots=4\na max_slots=4", "line 2, column 1: `a` has 5 slots with this line, but at most 4"),
        ("a slots=", "column 3: `slots` has no number"),
        ("a SLOTS=2", "column 3: `SLOTS` is not an attribute of a host"),
        ("a sockets=2", "column 3: `sockets` is not an attribute of a host"),
        ("slots=2", "column 1: `slots` has no host before it"),
        ("rank 0=a slot=1", "column 6: `0` is not an attribute of a host"),
        ("4 node01", "column 1: `4` is not a host name"),
        ("8", "column 1: `8` is not a host name"),
        ("a 8 b", "column 3: `8` is not a host name"),
        ("a 0", "column 3: `0` is not a host name"),
        ("10.0.0.1 a", "column 10: `10.0.0.1` and `a` are one host, as in /etc/hosts, or two"),
        ("::1\tlocalhost a # own", "column 5: `::1` and `localhost` are one host, as in /etc/hosts, or two"),
        ("n1 idle\nn2 down", "column 4: `idle` may be no host"),
        ("total 12\nn1", "column 1: `total 12` has another form than other lines, and may be no host"),
        ("n1\njob 77", "line 2, column 1: `job 77` has another form than other lines, and may be no host"),
        (
            "n1 8\ntotal 8",
            "line 2, column 1: `total 8` has another form than other lines, and may be no host",
        ),
        ("n1\nn2\nDone.", "line 3, column 1: `Done.` has another form than other lines, and may be no host"),
        (
            "n1:4\nn2:4\ntotal:8",
            "line 3, column 1: `total:8` has another form than other lines, and may be no host",
        ),
        (
            "n1 slots=4\nn2 slots=4\ntotal slots=8",
            "line 3, column 1: `total slots=8` has another form than other lines, and may be no host",
        ),
        ("total:8\nn1\nn2", "column 1: `total:8` has another form than other lines, and may be no host"),
        ("NODELIST STATE\nn1 idle", "column 1: `NODELIST` may be no host"),
        (
            "n1 slots=4\nn2 slots=4 down",
            "line 2, column 12: `down` is not part of a line of hosts with slots",
        ),
        ("n1:4 idle\nn2:4", "column 6: `idle` is not part of a line of hosts with slots"),
        ("2*n1 closed\n", "column 6: `closed` is not part of a line of hosts with slots"),
        ("down n1 slots=4", "column 1: `down` may be no host"),
        ("n1 port=22 n2", "column 12: `n2` is not part of a line of hosts with slots"),
        ("n1 slots=4\n12:00:01 n2 slots=4", "line 2, column 1: the row `n2 slots=4` is behind `12:00:01 `"),
        ("n1 slots=4\n[n2] n2 slots=4", "line 2, column 1: the row `n2 slots=4` is behind `[n2] `"),
        ("n1\n2026-11-30T10:00:00 n2\n", "line 2, column 1: the row `n2` is behind `2026-11-30T10:00:00 `"),
        ("0: n1 slots=4\n1: n2 slots=4", "column 1: every line is behind `0: `"),
        ("[1,0]<stdout>:n1\n[1,1]<stdout>:n2", "column 1: every line is behind `[1,0]<stdout>:`"),
        ("[0] n1\n[1] n2", "column 1: every line is behind `[0] `"),
        ("[0] n1:4", "column 1: `[0]` is not part of a line of hosts with slots"),
        ("12:00:01 n1\n12:00:01 n2", "column 1: every line is behind `12:00:01 `"),
        ("alpha beta\ngamma delta", "column 1: `alpha` may be no host"),
        ("n1 idle", "column 4: `idle` may be no host"),
        ("Job completed", "column 1: `Job` may be no host"),
        ("2*a:2", "column 5: `2` is not a host name"),
        ("^a", "column 1: `^a` is not a host name"),
        ("@a", "column 1: `@a` is not a host name"),
        ("a/0+b/0", "column 1: `a/0+b/0` is not a host name"),
        ("x n[2-1]", "column 5: the range is descending, from 2 to 1"),
    ] {
        assert_eq!(message(text), format!("host list, {fault}"), "{text}");
    }
}

#[test]
fn host_files_of_public_reports_have_their_slots() {
    let Some(data) = given_data() else { return };
    for (file, slots) in
        [("het", &[8, 4, 4][..]), ("ompi_cpu", &[2, 2]), ("ompi_spaces", &[2, 2]), ("ompi_user", &[2, 2])]
    {
        let path = data.join("reports").join(format!("hostfile-{file}"));
        let of = |(n, slots): (u32, &u32)| (format!("node0{n}"), Some(*slots));
        assert_eq!(read(&path).unwrap().hosts, (1..).zip(slots).map(of).collect::<Hosts>(), "{file}");
    }
}

proptest! {
    /// A word behind a host with slots was a further host.
    #[test]
    fn words_behind_slots_are_refused(word in "[a-z]{1,9}[*~]?|\\([a-z ]{1,9}\\)|[A-Z]{2,9}|n[0-9]|;|- ?[a-z]{0,4}", form in 0usize..4) {
        let host = ["n1 slots=4", "n1:4", "4*n1", "n1 max_slots=4"][form];
        let text = format!("n7 slots=2\n{host} {word}\n");
        prop_assert!(expand(&text).is_err(), "{}", text);
    }

    /// Any hosts in any form that a program writes.
    #[test]
    fn every_form_says_the_same(other in "[A-Z_]{4,9}|[a-z]{1,9} [0-9]{1,3}|n[0-9]{1,3} [a-z]{1,9}[*~]?|([A-Za-z]{1,9} ){1,4}[a-z]{1,9}|\\$ ?|PS C:.[a-z]{0,5}> ?[a-z]{0,5}", slots in prop::collection::vec(1u32..200, 1..20), form in 0usize..7, places in prop::collection::vec(0usize..100, 0..4)) {
        let of = |(host, slots): (usize, &u32)| match form {
            0 => format!("n{host} slots={slots}\n"),
            1 => format!("me@n{host} slots = {slots} max_slots = 999\n"),
            2 => format!("n{host}:{slots}\n"),
            3 => format!("n{host} {slots} "),
            4 => format!("n{host} {slots} all.q@n{host} UNDEFINED\n"),
            5 => format!("n{host}:{slots},"),
            _ => format!("n{host}\n").repeat(*slots as usize + 1),
        };
        let text: String = slots.iter().enumerate().map(of).collect();
        let more = u32::from(form == 6);
        let expected: Hosts = slots.iter().enumerate().map(|(host, slots)| (format!("n{host}"), Some(slots + more))).collect();
        let read = expand(&text).unwrap();
        prop_assert_eq!((&read.hosts, read.remarks.len()), (&expected, 0));
        // The same with messages of programs, which begin after any line.
        if !text.contains('\n') {
            return Ok(());
        }
        let mut lines: Vec<&str> = text.lines().collect();
        let messages = ["srun: warning: can't run", "Warning: Permanently added 'n1' (ED25519)", "$ cat hosts", "Last login: Mon"];
        let ends = lines.len() + 1;
        let at = places.iter().map(|place| place % ends);
        let first = at.clone().min();
        at.zip(messages).for_each(|(place, message)| lines.insert(place, message));
        let read = expand(&lines.join("\n")).unwrap();
        prop_assert_eq!(&read.hosts, &expected);
        let said = first.map(|first| format!("lines of other programs, skipped: {}, the first in line {}: ", places.len(), first + 1));
        prop_assert!(read.remarks.first().map_or(said.is_none(), |remark| remark.starts_with(&said.unwrap_or_default())));
        // A line that is none of hosts by its shape is said or refused: it had become a host. A header is the first line.
        let at = if other.contains(' ') { places.last().map_or(0, |place| place % ends) } else { 0 };
        lines.insert(at, &other);
        if let Ok(read) = expand(&lines.join("\n")) {
            prop_assert_eq!(read.hosts, expected, "{}", lines.join("\n"));
            let all = format!("lines of other programs, skipped: {}, ", places.len() + 1);
            prop_assert!(read.remarks[0].starts_with(&all), "{}", lines.join("\n"));
        }
    }
}
