//! Model types as Arrow tables in Parquet files.
