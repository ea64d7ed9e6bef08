"""What Azure would receive: Bicep files and compiled templates, evaluated into the resources that they declare.

Entry points: `resources_of` in tests/bed/bicep/deployment.py for a rendered folder, `resources_of_template` in
tests/bed/bicep/template.py for compiled JSON. Unknown syntax, functions and names raise `EvaluationError`: what is not
understood fails the test.
"""
