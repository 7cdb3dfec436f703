# What a function of its own runtime finds: the emulator where SAM starts it, and a folder for the function.
FROM jari-stand-in:bookworm
COPY aws-lambda-rie /var/rapid/aws-lambda-rie
RUN mkdir -p /var/task /var/runtime
WORKDIR /var/task
