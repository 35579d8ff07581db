"""Estimators in the manner of scikit-learn, which need not be installed.

Files
    online_glm             `OnlineGLM`
    online_glm_classifier  `OnlineGLMClassifier`
    online_estimator       what both share
    linear_model           gaussian labels
    curved_model           shares, counts and signs
    class_model            several classes together
    estimator_state        what was learnt, and a file holds
    table_rows             arrays, data frames and sparse matrices read as rows
    summary                the table of coefficients
    coefficient_plot       a plot of them
    hashing                columns added up in buckets
    width                  how long very many columns take
    scikit_learn           its base classes, or a stand-in
"""
