"""CTranslate2: conversion, export, and the cache of conversions."""
