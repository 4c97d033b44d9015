"""Will a parcel be late? A Keras 3 model as an Estimator."""
