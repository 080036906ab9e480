for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    if (!head) return;
    const column = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending" ? 1 : -1;
    const value = (row) => { const cell = row.cells[column]; return cell.dataset.value ?? cell.textContent; };
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      return isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    };
    const rows = [...body.rows].sort((a, b) => up * compare(a, b));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
    body.append(...rows);
  });
}
