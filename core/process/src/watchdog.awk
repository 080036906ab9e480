# Ends what a killed process leaves, as src/family.rs does. Reads `+ ROOT GROUP START` and `- ROOT` until the process is gone.

function look(  line, field, pid, grew) {
  split("", parent); split("", group); split("", start)
  while ((LIST | getline line) > 0) {
    pid = line + 0
    # The name, in parentheses, may hold anything.
    sub(/.*\) /, "", line)
    split(line, field, " ")
    # A program whose first thread has ended is called a zombie, too.
    if (field[1] == "Z" && field[18] == 1) continue
    parent[pid] = field[2]; group[pid] = field[3]; start[pid] = field[20]
  }
  close(LIST)
  for (pid in roots) if (pid in start && start[pid] != roots[pid]) delete roots[pid]
  for (pid in members) if (!(pid in start) || start[pid] != members[pid]) delete members[pid]
  do {
    grew = 0
    for (pid in parent) {
      if (pid in members) continue
      if (pid in roots || (group[pid] in roots && groups[group[pid]] == group[pid]) || parent[pid] in members) {
        members[pid] = start[pid]
        grew = 1
      }
    }
  } while (grew)
  for (pid in members) return 1
  return 0
}

function send(signal, pids) {
  if (pids != "") system("kill -s " signal pids " 2>/dev/null")
}

$1 == "+" { groups[$2] = $3; roots[$2] = $4 }
$1 == "-" { delete groups[$2]; delete roots[$2] }

END {
  LIST = "cat /proc/[0-9]*/stat 2>/dev/null"
  for (root in groups) {
    ours[groups[root]]
    # Without /proc.
    if (roots[root] == 0 && groups[root] == root) send("KILL", " -- -" root)
  }
  # Five seconds: launchers end their ranks on other hosts meanwhile.
  for (looks = 0; look(); looks++) {
    pids = ""
    split("", listed)
    # Parents first: a shell whose child ends first goes on with its next command.
    do {
      grew = 0
      for (pid in members) {
        if (pid in listed || (parent[pid] in members && !(parent[pid] in listed))) continue
        listed[pid]; grew = 1
        is_to_be_told = looks >= 50 || (!(pid in told) && ((looks == 0 && group[pid] in ours) || !(parent[pid] in members)))
        if (is_to_be_told) { told[pid]; pids = pids " " pid }
      }
    } while (grew)
    send(looks < 50 ? "TERM" : "KILL", pids)
    if (looks == 70) exit
    system("sleep 0.1")
  }
}
