lab test check:
	python3 run.py $@

player: vizggml/widgets/player/node_modules
	cd vizggml/widgets/player && npm run --silent check && npm run --silent bundle

vizggml/widgets/player/node_modules:
	cd vizggml/widgets/player && npm ci

book:
	python3 run.py book

.PHONY: lab test check player book
