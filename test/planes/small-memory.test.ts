/** A gateway with little memory refuses large requests, so that the kernel does not kill it with all its streams. */
import { expect, spyOn, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../support/chat.ts";
import { withChat } from "../support/service.ts";

const MB = 1024 * 1024;
const memory = spyOn(process, "constrainedMemory").mockReturnValue(256 * MB);
const { service } = await withChat();
memory.mockRestore();

test("a request body too large for the memory is refused while other requests succeed", async () => {
	const [large, small] = [await service.customer(), await service.customer()];
	const answer = await service.chat(large.secret, ask("x".repeat(17 * MB)));
	const { status, error } = await errorOf(answer);
	expect([status, error.message]).toEqual([413, "The body is larger than 16 MB."]);
	expect((await service.chat(small.secret, ask())).status).toBe(200);
	await expectUncharged(service, large.accountId);
	expect(service.logged.find(({ message }) => String(message).startsWith("the limits are lowered"))).toMatchObject({
		memory_mb: 256,
		body_memory_mb: 16,
	});
});
