import { expect, test } from "bun:test";
import { onlyUsage } from "../../support/chat.ts";
import { withService } from "../../support/service.ts";
import { deployment, SECRET_WORDS, withEndpoints } from "../../support/upstream-endpoints.ts";

const upstream = withEndpoints("openai");
const counting = withEndpoints("vllm");
const service = await withService({
	models: [
		deployment({
			id: "image",
			kind: "image",
			url: upstream.url,
			dialect: "openai",
			rates: 'image: "0.04"',
			parameters: "n, size, response_format",
		}),
		deployment({ id: "image-tokens", kind: "image", url: counting.url, rates: 'image: "0", input: "5", output: "40"' }),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});

const only = (accountId: string) => onlyUsage(service, accountId);

test("an image costs its price, whether returned as data or as public URL", async () => {
	for (const format of ["b64_json", "url"]) {
		const { secret, accountId } = await service.customer();
		const ask = { model: "image", prompt: "a cat", n: 3, size: "512x512", response_format: format, style: "vivid" };
		const response = await service.post("/v1/images/generations", secret, ask);
		const text = await response.text();
		expect(text).not.toMatch(SECRET_WORDS);
		expect(response.headers.get("x-ignored-parameters")).toBe("style");
		const one =
			format === "url"
				? { url: "https://images.example.com/a.png" }
				: { b64_json: "aGVsbG8=", revised_prompt: "a cat" };
		expect(JSON.parse(text)).toEqual({
			created: expect.any(Number),
			data: [one, one, one],
			usage: {
				input_tokens: 5,
				output_tokens: 300,
				total_tokens: 305,
				input_tokens_details: { text_tokens: 5, image_tokens: 0 },
				images: 3,
				cost: 0.12,
				basis: "exact",
			},
		});
		expect(await only(accountId)).toMatchObject({ endpoint: "image", charged: 120_000_000, units: 3, basis: "exact" });
	}
});

test("missing images are not charged, and surplus images are not returned", async () => {
	const { secret, accountId } = await service.customer();
	upstream.next(() => Response.json({ data: [{ b64_json: "aa==" }] }));
	await service.post("/v1/images/generations", secret, { model: "image", prompt: "x", n: 4 });
	expect(await only(accountId)).toMatchObject({ charged: 40_000_000, reserved: 160_000_000 });
	const other = await service.customer();
	upstream.next(() => Response.json({ data: [1, 2, 3].map(() => ({ b64_json: "aa==" })) }));
	const response = await service.post("/v1/images/generations", other.secret, { model: "image", prompt: "x" });
	expect((await response.json()).data).toHaveLength(1);
	expect(await only(other.accountId)).toMatchObject({ charged: 40_000_000 });
});

test("an image model with token rates charges tokens of the prompt and of the images", async () => {
	const { secret, accountId } = await service.customer();
	await service.post("/v1/images/generations", secret, { model: "image-tokens", prompt: "a cat" });
	expect(await only(accountId)).toMatchObject({ charged: 5 * 5_000 + 100 * 40_000, basis: "exact" });
});

test.each([
	["http://10.0.0.7/out.png"],
	["https://10.0.0.7/out.png"],
	["https://gpu-7/out.png"],
	["https://gpu.internal/out.png"],
	["https://[::1]/x.png"],
	["file:///srv/out.png"],
	["https://user:pass@example.com/x.png"],
])("the gateway does not return the image URL %s", async (url) => {
	const { secret, accountId } = await service.customer();
	upstream.next(() => Response.json({ data: [{ url }] }));
	const response = await service.post("/v1/images/generations", secret, { model: "image", prompt: "x" });
	expect(response.status).toBe(502);
	expect(await response.text()).not.toContain("out.png");
	expect(await only(accountId)).toMatchObject({ charged: 0 });
});

test("an image that the server returns as a data URL is returned as its content", async () => {
	const { secret } = await service.customer();
	upstream.next(() => Response.json({ data: [{ url: "data:image/png;base64,aGVsbG8=" }] }));
	const response = await service.post("/v1/images/generations", secret, { model: "image", prompt: "x" });
	expect((await response.json()).data).toEqual([{ b64_json: "aGVsbG8=" }]);
});

test("streaming of images is refused with the field's name", async () => {
	const { secret } = await service.customer();
	const response = await service.post("/v1/images/generations", secret, { model: "image", prompt: "x", stream: true });
	expect(response.status).toBe(400);
	expect((await response.json()).error).toMatchObject({ code: "unsupported_parameter", param: "stream" });
});
