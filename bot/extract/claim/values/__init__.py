"""Values that a report gives in prose: in sentences, tables, spans and comments, with or without their side."""
