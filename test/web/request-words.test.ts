import { expect, test } from "bun:test";
import { basisText, endingText, failureReason } from "../../src/web/request-words.ts";

test("the reason of a failed request distinguishes busy servers from restarts", () => {
	const busy = { ending: "upstream_failed", status: 503 } as const;
	expect(failureReason(busy)).toBe("No server for this model was available.");
	expect(endingText(busy)).toBe("No server available");
	const restarted = { ending: "shutdown", status: 503 } as const;
	expect(failureReason(restarted)).toBeUndefined();
	expect(endingText(restarted)).toBe("Service restarted");
	expect(endingText({ ending: "upstream_failed", status: 502 })).toBe("Model server error");
	expect(failureReason({ ending: "finished", status: 200 })).toBeUndefined();
});

test("an estimated charge mentions the client's disconnect only if there was one", () => {
	expect(basisText({ basis: "estimated", ending: "client_left" })).toContain("the client disconnected");
	for (const ending of ["finished", "upstream_died", "upstream_silent", "shutdown"])
		expect(basisText({ basis: "estimated", ending })).not.toContain("client");
	expect(basisText({ basis: "exact", ending: "client_left" })).toContain("counted by the model server");
	expect(basisText({ basis: "recovered", ending: "crashed" })).toContain("crashed");
});
