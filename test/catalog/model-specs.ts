import type { ModelSpec, Rates } from "../../src/catalog/model.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";

const pico = (value: number) => value as PicoUsdPerUnit;

export function ratesOf(input: number): Rates {
	return {
		input: pico(input),
		cachedInput: pico(input),
		output: pico(input * 2),
		request: pico(0),
		image: pico(0),
		audioSecond: pico(0),
		search: pico(0),
	};
}

export function chatSpec(id: string, input = 230_000): ModelSpec {
	return {
		id,
		aliases: [],
		name: id,
		kind: "chat",
		modes: new Set(["chat"]),
		inputModalities: new Set(["text"]),
		outputModalities: new Set(["text"]),
		imageUrls: "data_only",
		contextLength: 8192,
		maxOutputTokens: 1024,
		templateOverheadTokens: 256,
		textNormalization: "nfkc",
		parameters: new Set(),
		unsupportedParameters: "ignore",
		rates: ratesOf(input),
		upstreams: [
			{
				url: "http://127.0.0.1:8000/v1",
				apiKey: null,
				model: id,
				dialect: "vllm",
				maxConcurrency: 256,
				keepAlive: true,
			},
		],
	};
}
