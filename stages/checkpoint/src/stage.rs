//! The stages of this room.
