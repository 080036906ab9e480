//! `hopmap schema`.

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn the_schema_knows_every_stage_and_its_parameters() {
    let sandbox = Sandbox::new();
    let schema: Value = serde_json::from_str(&sandbox.stdout(&["schema"])).unwrap();
    let stages: Value = serde_json::from_str(&sandbox.stdout(&["stages", "--json"])).unwrap();
    for stage in stages.as_array().unwrap() {
        let kind = stage["kind"].as_str().unwrap();
        let with = &schema["definitions"][kind.replace('/', "-")];
        let names = |value: &Value| {
            value["properties"].as_object().map(|map| map.keys().cloned().collect::<Vec<_>>())
        };
        assert_eq!(
            names(with).unwrap_or_default(),
            names(&stage["parameters"]).unwrap_or_default(),
            "{kind}"
        );
    }
}

#[test]
fn the_parameters_of_one_stage() {
    let schema: Value =
        serde_json::from_str(&Sandbox::new().stdout(&["schema", "topology/synthetic"])).unwrap();
    assert_eq!(schema["properties"]["shape"]["type"], "string");
}
