"""Findings of diagnoses: their kinds (`kinds`), and the evidence of each.

On the wire and in a document, evidence is a plain JSON object, `Finding.evidence`. Code reads it with
`record.read_evidence` and writes it with `record.make_finding`, as one of the frozen types of `types` and `calls`.
So a misspelled field is a type error. `questions` answers what a finding means.
"""
