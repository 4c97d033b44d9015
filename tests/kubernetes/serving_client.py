"""Asks for predictions by a connection each, for some seconds or until a line comes on standard input.

python serving_client.py ADDRESS TOKEN CLIENTS SECONDS     0 seconds: until the line
"""

import http.client
import json
import sys
import threading
import time

ROW = {"fare": 12, "company": None, "trip_miles": 2.5, "payment_type": "Cash"}


def ask(address, token):
    """Returns the class of the row."""
    connection = http.client.HTTPConnection(address, 8501, timeout=30)
    connection.request(
        "POST",
        "/v1/models/taxi:classify",
        json.dumps({"examples": [ROW]}),
        {"Authorization": f"Bearer {token}"},
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise OSError(f"{answer.status} {text[:200]}")
    return json.loads(text)["results"]


def main(address, token, clients, secs):
    """Prints how many requests were answered, and why others were not, as JSON."""
    stop, answered, failures = threading.Event(), [], []

    def work():
        while not stop.is_set():
            try:
                ask(address, token)
                answered.append(1)
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
            time.sleep(0.05)

    threads = [threading.Thread(target=work) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    if float(secs):
        time.sleep(float(secs))
    else:
        sys.stdin.readline()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"answered": len(answered), "failures": failures}))


if __name__ == "__main__":
    main(*sys.argv[1:])
