//! One remote node: packet sequence, retransmission, acknowledgements, deduplication.
