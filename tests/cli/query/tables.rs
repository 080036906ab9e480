//! What can be asked about.

use serde_json::Value;

use super::with_query;

#[test]
#[expect(clippy::too_many_lines, reason = "a list is long")]
fn tables_are_listed() {
    let Some(sandbox) = with_query() else { return };
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables"]), @r"
    cells: 5 rows
      cell                         TEXT
      stage                        TEXT
      kind                         TEXT
      state                        TEXT
      seconds                      DOUBLE
      timed                        BOOLEAN
      key                          TEXT
    machine: 1 row
      cell                         TEXT
      bandwidth_bytes_per_s        TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      parameter_hosts              TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      parameter_slots              BIGINT
      hosts                        DOUBLE
      links                        DOUBLE
      slots                        DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    machine_groups: 16 rows
      cell                         TEXT
      level                        BIGINT
      slot                         BIGINT
      group                        BIGINT
      bandwidth_bytes_per_s        TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      slots                        BIGINT
    machine_levels: 2 rows
      cell                         TEXT
      level                        BIGINT
      cost                         DOUBLE
      bandwidth_bytes_per_s        TEXT
      bytes                        TEXT
      cores                        TEXT
      parameter_cost               TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      slots                        BIGINT
    machine_links: 8 rows
      cell                         TEXT
      source                       BIGINT
      destination                  BIGINT
      latency_s                    DOUBLE
      bandwidth_bytes_per_s        DOUBLE
      parameter_bandwidth_bytes_per_s TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      slots                        BIGINT
    machine_nodes: 5 rows
      cell                         TEXT
      id                           BIGINT
      name                         TEXT
      kind                         TEXT
      bandwidth_bytes_per_s        TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      slots                        BIGINT
    machine_slots: 8 rows
      cell                         TEXT
      slot                         BIGINT
      host                         BIGINT
      core                         BIGINT
      bandwidth_bytes_per_s        TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      hosts_file                   TEXT
      intra_node_costs             TEXT
      link_latency_s               TEXT
      shape                        TEXT
      slots                        BIGINT
    placement: 1 row
      cell                         TEXT
      cooling                      TEXT
      cooling_rate                 TEXT
      crossover_on_exchange        BOOLEAN
      parameter_evaluations        BIGINT
      exchange_interval            TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      generations                  TEXT
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      local_search                 BOOLEAN
      max_accepted_per_temperature TEXT
      move_type                    TEXT
      moves_per_temperature        TEXT
      moves_unit                   TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      preset                       TEXT
      rank_order_fallback          BOOLEAN
      seed                         BIGINT
      solvers                      TEXT
      stop_when_frozen             BOOLEAN
      temperature_after_exchange   TEXT
      time_limit_s                 TEXT
      weight                       TEXT
      F                            DOUBLE
      T                            DOUBLE
      dilation_max                 DOUBLE
      dilation_mean                DOUBLE
      evaluations                  DOUBLE
      exchanges                    DOUBLE
      hop_bytes                    DOUBLE
      max_link_load_bytes          DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    placement_convergence: 8 rows
      cell                         TEXT
      island                       BIGINT
      evaluations                  BIGINT
      cost                         DOUBLE
      cooling                      TEXT
      cooling_rate                 TEXT
      crossover_on_exchange        BOOLEAN
      parameter_evaluations        BIGINT
      exchange_interval            TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      generations                  TEXT
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      local_search                 BOOLEAN
      max_accepted_per_temperature TEXT
      move_type                    TEXT
      moves_per_temperature        TEXT
      moves_unit                   TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      preset                       TEXT
      rank_order_fallback          BOOLEAN
      seed                         BIGINT
      solvers                      TEXT
      stop_when_frozen             BOOLEAN
      temperature_after_exchange   TEXT
      time_limit_s                 TEXT
      weight                       TEXT
    placement_hosts: 4 rows
      cell                         TEXT
      host                         TEXT
      first_slot                   BIGINT
      slots                        BIGINT
      cooling                      TEXT
      cooling_rate                 TEXT
      crossover_on_exchange        BOOLEAN
      evaluations                  BIGINT
      exchange_interval            TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      generations                  TEXT
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      local_search                 BOOLEAN
      max_accepted_per_temperature TEXT
      move_type                    TEXT
      moves_per_temperature        TEXT
      moves_unit                   TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      preset                       TEXT
      rank_order_fallback          BOOLEAN
      seed                         BIGINT
      solvers                      TEXT
      stop_when_frozen             BOOLEAN
      temperature_after_exchange   TEXT
      time_limit_s                 TEXT
      weight                       TEXT
    placement_ranks: 8 rows
      cell                         TEXT
      rank                         BIGINT
      slot                         BIGINT
      host                         TEXT
      core                         BIGINT
      cooling                      TEXT
      cooling_rate                 TEXT
      crossover_on_exchange        BOOLEAN
      evaluations                  BIGINT
      exchange_interval            TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      generations                  TEXT
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      local_search                 BOOLEAN
      max_accepted_per_temperature TEXT
      move_type                    TEXT
      moves_per_temperature        TEXT
      moves_unit                   TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      preset                       TEXT
      rank_order_fallback          BOOLEAN
      seed                         BIGINT
      solvers                      TEXT
      stop_when_frozen             BOOLEAN
      temperature_after_exchange   TEXT
      time_limit_s                 TEXT
      weight                       TEXT
    program: 1 row
      cell                         TEXT
      format                       TEXT
      path                         TEXT
      ranks                        TEXT
      bytes                        DOUBLE
      messages                     DOUBLE
      pairs                        DOUBLE
      processes                    DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    program_edges: 8 rows
      cell                         TEXT
      source                       BIGINT
      destination                  BIGINT
      messages                     BIGINT
      bytes                        BIGINT
      format                       TEXT
      path                         TEXT
      ranks                        TEXT
    program_processes: 8 rows
      cell                         TEXT
      rank                         BIGINT
      host                         TEXT
      compute_s                    DOUBLE
      communication_s              DOUBLE
      collective_s                 DOUBLE
      format                       TEXT
      path                         TEXT
      ranks                        TEXT
    quality: 1 row
      cell                         TEXT
      samples                      BIGINT
      seed                         BIGINT
      F                            DOUBLE
      F_linear                     DOUBLE
      F_over_linear                DOUBLE
      F_over_random                DOUBLE
      F_over_round_robin           DOUBLE
      F_random                     DOUBLE
      F_round_robin                DOUBLE
      T                            DOUBLE
      T_linear                     DOUBLE
      T_over_linear                DOUBLE
      T_over_random                DOUBLE
      T_over_round_robin           DOUBLE
      T_random                     DOUBLE
      T_round_robin                DOUBLE
      dilation_max                 DOUBLE
      dilation_max_linear          DOUBLE
      dilation_max_over_linear     DOUBLE
      dilation_max_over_random     DOUBLE
      dilation_max_over_round_robin DOUBLE
      dilation_max_random          DOUBLE
      dilation_max_round_robin     DOUBLE
      dilation_mean                DOUBLE
      dilation_mean_linear         DOUBLE
      dilation_mean_over_linear    DOUBLE
      dilation_mean_over_random    DOUBLE
      dilation_mean_over_round_robin DOUBLE
      dilation_mean_random         DOUBLE
      dilation_mean_round_robin    DOUBLE
      hop_bytes                    DOUBLE
      hop_bytes_linear             DOUBLE
      hop_bytes_over_linear        DOUBLE
      hop_bytes_over_random        DOUBLE
      hop_bytes_over_round_robin   DOUBLE
      hop_bytes_random             DOUBLE
      hop_bytes_round_robin        DOUBLE
      max_link_load_bytes          DOUBLE
      max_link_load_bytes_linear   DOUBLE
      max_link_load_bytes_over_linear DOUBLE
      max_link_load_bytes_over_random DOUBLE
      max_link_load_bytes_over_round_robin DOUBLE
      max_link_load_bytes_random   DOUBLE
      max_link_load_bytes_round_robin DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    quality_placements: 23 rows
      cell                         TEXT
      placement                    TEXT
      sample                       BIGINT
      F                            DOUBLE
      T                            DOUBLE
      dilation_max                 DOUBLE
      dilation_mean                DOUBLE
      hop_bytes                    DOUBLE
      max_link_load_bytes          DOUBLE
      samples                      BIGINT
      seed                         BIGINT
    rankfile: 1 row
      cell                         TEXT
      open_mpi                     BIGINT
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    runs: 1 row
      run                          TEXT
      pipeline                     TEXT
      time                         TEXT
      seconds                      DOUBLE
      exit                         BIGINT
      ran                          BIGINT
      cached                       BIGINT
      failed                       BIGINT
    ");
    let list: Value =
        serde_json::from_str(&sandbox.stdout(&["query", "--tables", "ring", "--json"])).unwrap();
    assert!(
        list.as_array()
            .unwrap()
            .iter()
            .any(|table| table["table"] == "placement_ranks" && table["rows"] == 8)
    );
    let shown = sandbox.stdout(&["query", "SHOW TABLES", "--format", "csv"]);
    assert!(shown.starts_with("table,rows,columns\ncells,5,"), "{shown}");
}
