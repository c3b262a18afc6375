lab test check:
	python3 run.py $@

.PHONY: lab test check
