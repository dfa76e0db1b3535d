"""SQL: schema, migrations, named queries; one transaction for a state change and its events."""
