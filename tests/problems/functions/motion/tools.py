"""Helpers of the motion functions."""


def speed(distance, time):
    return distance / time
