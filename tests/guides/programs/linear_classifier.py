"""A premade Estimator, from a CSV file to the first prediction: which house plants thrive?"""

import csv
import random
import tempfile
from pathlib import Path

import tensorflow as tf

CHANCES = {"window": 0.9, "room": 0.5, "corner": 0.1}
SHOPS = ("Fern & Co", "Green Hall", "Monday market", "unknown")


def write_plants(path):
    """Writes 600 plants, of which those with more light thrive more often."""
    draw = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["thrives", "height_cm", "place", "shop"])
        for _ in range(600):
            place = draw.choices(list(CHANCES), weights=[3, 3, 4])[0]
            thrives = int(draw.random() < CHANCES[place])
            writer.writerow([thrives, round(draw.uniform(5, 90), 1), place, draw.choice(SHOPS)])
    return str(path)


def plants():
    """Returns shuffled batches without an end."""
    batches = tf.data.experimental.make_csv_dataset(plants_csv, batch_size=24, label_name="thrives")
    return batches.cache().repeat().shuffle(300).prefetch(tf.data.AUTOTUNE)


plants_csv = write_plants(Path("plants.csv"))
height = tf.feature_column.numeric_column("height_cm")
place = tf.feature_column.categorical_column_with_vocabulary_list("place", list(CHANCES))
shop = tf.feature_column.categorical_column_with_hash_bucket("shop", 16)

model_dir = tempfile.mkdtemp()
classifier = tf.estimator.LinearClassifier(
    feature_columns=[height, place, shop], model_dir=model_dir, n_classes=2
)
classifier = classifier.train(input_fn=plants, steps=120)
metrics = classifier.evaluate(plants, steps=8)
for name, value in metrics.items():
    print(f"{name}: {value}")

prediction = next(classifier.predict(plants))
for name, value in prediction.items():
    print(f"{name}: {value}")
