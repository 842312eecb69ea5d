"""As much of a progress bar as a patch is put on."""
