<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Formgrader</title>
</head>
<body>
<p>On a JupyterHub, formgrader opens in a browser tab of its own. Copy this address into the tab:</p>
<p>{{ address }}</p>
</body>
</html>
