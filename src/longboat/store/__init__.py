"""SQL: schema, migrations, named queries; one transaction for a state change and the events that tell of it."""
