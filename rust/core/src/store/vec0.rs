//! vec0
