//! What a parallel program did: traces to task graphs.
