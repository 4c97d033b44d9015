"""The error of a component that is the user's to mend, and not the component's."""


class SettingError(ValueError):
    """A setting names what the data or the model has not; it is known only once they are there."""
