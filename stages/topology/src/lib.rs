//! What the machine is: synthetic shapes to system graphs.
