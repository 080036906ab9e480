//! The definitions of an archive, as far as they matter here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use hopmap_text::FileError;

use super::fields::{Fault, Fields, told};
use super::inflate::open_lines;
use crate::call_stack::RegionKind;
use crate::selection::Marks;

/// The attribute of a group that is a communicator (`OTF_ATTR_IsCommunicator`).
const IS_COMMUNICATOR: u32 = 7;

/// A group of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) members: Vec<u32>,
}

/// What one definition file says.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) ticks_per_second: Option<u64>,
    /// The program that wrote the archive.
    pub(super) creator: String,
    /// The processes and the parent of each, which is zero if there is none.
    pub(super) processes: BTreeMap<u32, u32>,
    /// The groups in the order in which they are defined.
    pub(super) groups: Vec<Group>,
    /// Lists of attributes among which is that of a communicator, and the groups with their lists.
    pub(super) communicator_lists: BTreeSet<u32>,
    pub(super) attributes: BTreeMap<u32, u32>,
    /// Group and name of each function.
    pub(super) functions: HashMap<u32, (u32, String)>,
    pub(super) function_groups: HashMap<u32, String>,
}

impl Definitions {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let mut definitions = Self::default();
        let mut lines = open_lines(path)?;
        while let Some(line) = lines.next_bytes()? {
            definitions.record(line.text).map_err(|what| line.error(told(line.text, what)))?;
        }
        Ok(definitions)
    }

    /// Ids of the groups of a name, or with a number.
    pub(super) fn groups_called(&self, name: &str) -> Vec<u32> {
        let number: Option<u32> = name.parse().ok();
        let called = |group: &&Group| group.name == name || Some(group.id) == number;
        self.groups.iter().filter(called).map(|group| group.id).collect()
    }

    /// Whether a group is marked as a communicator.
    pub(super) fn is_communicator(&self, group: u32) -> bool {
        self.attributes.get(&group).is_some_and(|list| self.communicator_lists.contains(list))
    }

    /// What matters about the functions. Those of the group `MPI` communicate, whatever they are called. Functions that
    /// `others` define are added to them, and groups that are not defined here are looked up there.
    pub(super) fn region_kinds(
        &self,
        others: Option<&Self>,
        marks: &mut Marks<'_>,
    ) -> HashMap<u32, RegionKind> {
        let group_name = |id| {
            let name = self.function_groups.get(id);
            name.or_else(|| others?.function_groups.get(id)).map_or("", String::as_str)
        };
        let functions = others.into_iter().flat_map(|others| &others.functions).chain(&self.functions);
        functions
            .map(|(id, (group, name))| {
                let kind = RegionKind::new(name, group_name(group).eq_ignore_ascii_case("MPI"), false);
                (*id, marks.mark(name, kind))
            })
            .collect()
    }

    fn record(&mut self, line: &[u8]) -> Result<(), Fault> {
        let mut fields = Fields::new(line);
        let keyword = fields.keyword();
        match keyword {
            b"" if fields.is_empty() => {}
            b"DTR" | b"DEFTIMERRESOLUTION" => self.timer_resolution(&mut fields)?,
            b"DP" | b"DEFPROCESS" => self.process(&mut fields)?,
            b"DPG" | b"DEFPROCESSGROUP" => self.group(&mut fields)?,
            b"DPGA" | b"DEFPROCESSORGROUPATTR" => {
                let group = fields.short()?;
                fields.expect(&[b"V", b"VALUE"], "the attributes are missing")?;
                self.attributes.insert(group, fields.short()?);
            }
            b"DA" | b"DEFATTRIBUTELIST" => {
                let list = fields.short()?;
                fields.expect(&[b"M", b"MEMBERS"], "the attributes are missing")?;
                if fields.list()?.contains(&IS_COMMUNICATOR) {
                    self.communicator_lists.insert(list);
                }
            }
            b"DF" | b"DEFFUNCTION" => {
                let function = fields.short()?;
                fields.expect(&[b"G", b"GROUP"], "the group is missing")?;
                let group = fields.short()?;
                self.functions.insert(function, (group, fields.name()?));
                fields.end_or_source()?;
            }
            b"DFG" | b"DEFFUNCTIONGROUP" => {
                let group = fields.short()?;
                self.function_groups.insert(group, fields.name()?);
            }
            b"DCR" | b"DEFCREATOR" => self.creator = fields.text()?,
            _ if is_known(keyword) => {}
            // Times and processes may stand before a definition and mean nothing there.
            b"" if fields.take(b'*') || fields.number().is_ok() => {}
            _ => return Err("it is no definition of OTF 1"),
        }
        Ok(())
    }

    fn timer_resolution(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let ticks = fields.number()?;
        fields.end()?;
        match self.ticks_per_second.replace(ticks) {
            Some(other) if other != ticks => Err("the timer resolution is defined in two ways"),
            _ => Ok(()),
        }
    }

    fn process(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let process = fields.short()?;
        let mut parent = 0;
        while !fields.is_empty() {
            match fields.keyword() {
                b"NM" | b"NAME" | b"N" => drop(fields.text()?),
                b"PT" | b"PARENT" | b"P" => parent = fields.short()?,
                _ => return Err("neither a name nor a parent follows"),
            }
        }
        match self.processes.insert(process, parent) {
            Some(other) if other != parent => Err("the process is defined in two ways"),
            _ => Ok(()),
        }
    }

    fn group(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let id = fields.short()?;
        let missing = "the members are missing";
        let mut members = Vec::new();
        let name = match fields.keyword() {
            b"M" | b"MEMBERS" => {
                members = fields.list()?;
                fields.name()?
            }
            // Without members the two keywords stand side by side.
            b"MNM" => fields.text()?,
            _ => return Err(missing),
        };
        fields.end()?;
        self.groups.push(Group { id, name, members });
        Ok(())
    }
}

/// Definitions without meaning here, and key-values.
fn is_known(keyword: &[u8]) -> bool {
    matches!(
        keyword,
        b"DCO"
            | b"DEFCOLLOP"
            | b"DCNT"
            | b"DEFCOUNTER"
            | b"DCG"
            | b"DEFCOUNTERGROUP"
            | b"DCA"
            | b"DEFCOUNTERASSIGNMENTS"
            | b"DCMT"
            | b"DEFCOMMENT"
            | b"DS"
            | b"DEFSCL"
            | b"DSF"
            | b"DEFSCLFILE"
            | b"DUI"
            | b"DEFUNIQUEID"
            | b"DV"
            | b"DEFVERSION"
            | b"DFL"
            | b"DEFFILE"
            | b"DFLG"
            | b"DEFFILEGROUP"
            | b"DK"
            | b"DEFKEYVALUE"
            | b"DTRG"
            | b"DEFTIMERANGE"
            | b"DPS"
            | b"DEFPROCESSSUBSTITUTES"
            | b"DAUX"
            | b"DEFAUXSAMPLEPOINT"
            | b"K"
            | b"KEY"
    )
}
