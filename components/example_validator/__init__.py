"""The ExampleValidator: do new data fit the schema, and are they like those of the model that serves?"""
