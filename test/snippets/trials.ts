/** How to run each tool of the pages: its versions, and manual steps that are not on the page. */
export interface Trial {
	readonly versions: Readonly<Record<string, string>>;
	readonly way: string;
	readonly before?: string;
	readonly after?: string;
	/** True if its last line starts a server, which `after` then queries. */
	readonly serves?: boolean;
	readonly env?: Readonly<Record<string, string>>;
	readonly notTried?: string;
}

/** Creates and activates a separate folder for Python packages. */
const VENV = "python3 -m venv .venv && . .venv/bin/activate";

/** The steps of a person in the browser: sign up, list the models and send a chat. */
const ASK_OPEN_WEBUI = `
at=http://localhost:8080
for attempt in $(seq 300); do curl -sf $at/health > /dev/null && break; sleep 1; done
curl -sf $at/health > /dev/null || { tail -20 serving.log >&2; exit 1; }
json="Content-Type: application/json"
token=$(curl -sf $at/api/v1/auths/signup -H "$json" -d '{"name":"Ada","email":"ada@example.com","password":"correct horse 9"}' |
  python -c 'import json, sys; print(json.load(sys.stdin)["token"])')
curl -sf $at/api/models -H "Authorization: Bearer $token" |
  python -c 'import json, sys; print(*[one["id"] for one in json.load(sys.stdin)["data"]])' | grep -w llama-3.3-70b-instruct
curl -sfN $at/api/chat/completions -H "Authorization: Bearer $token" -H "$json" -d '{"model":"llama-3.3-70b-instruct","stream":true,
  "messages":[{"role":"user","content":"Name three rivers of Europe."}]}' |
  python -c 'import json, sys
for line in sys.stdin:
    if line.startswith("data: {"):
        for choice in json.loads(line[6:]).get("choices", []):
            print(choice["delta"].get("content") or "", end="")'
`;

export const TRIALS: Readonly<Record<string, Trial>> = {
	curl: { versions: {}, way: "as shown" },
	"openai-python": { versions: { openai: "3.54.0" }, way: "as shown", before: VENV },
	"openai-javascript": { versions: { openai: "7.57.0" }, way: "as shown" },
	"openai-go": { versions: { "github.com/openai/openai-go/v3": "v3.96.0" }, way: "as shown" },
	"openai-java": { versions: { "com.openai:openai-java": "4.101.0" }, way: "as shown" },
	"langchain-python": { versions: { "langchain-openai": "1.7.3" }, way: "as shown", before: VENV },
	"langchain-javascript": { versions: { "@langchain/openai": "1.6.0", "@langchain/core": "1.4.0" }, way: "as shown" },
	llamaindex: { versions: { "llama-index-llms-openai-like": "0.8.1" }, way: "as shown", before: VENV },
	"ai-sdk": { versions: { ai: "7.0.173", "@ai-sdk/openai-compatible": "3.0.92" }, way: "as shown" },
	litellm: { versions: { litellm: "1.104.0" }, way: "as shown", before: VENV },
	cursor: {
		versions: {},
		way: "not tried",
		notTried:
			"not available as a package, and sends its requests from its vendor's servers; these requests are in `snippets.test.ts`",
	},
	continue: {
		versions: { "@continuedev/cli": "1.5.47" },
		way: "its command line with the file as shown",
		before: "npm install --silent @continuedev/cli@1.5.47",
		after: 'node_modules/.bin/cn --print "Name three rivers of Europe."',
	},
	"open-webui": {
		versions: { "open-webui": "0.12.4" },
		way: "started as shown; used through its own interface after sign-up",
		before: VENV,
		serves: true,
		after: ASK_OPEN_WEBUI,
		env: { OFFLINE_MODE: "true", HF_HUB_OFFLINE: "1", DATA_DIR: "." },
	},
};
