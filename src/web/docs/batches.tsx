import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { batchSnippets, WEBHOOK_SNIPPETS } from "../snippets.ts";
import { rich, t } from "../texts.tsx";

const LINE = `{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "MODEL_ID", "max_tokens": 64, "messages": [{"role": "user", "content": "Hello!"}]}}`;

const EVENT = `{
  "id": "evt_…",
  "object": "event",
  "type": "batch.completed",
  "created_at": 1795338025,
  "data": {
    "id": "batch_…", "status": "completed", "endpoint": "/v1/chat/completions", "model": "MODEL_ID",
    "request_counts": {"total": 40, "completed": 39, "failed": 1}, "cost_usd": "0.0028",
    "input_file_id": "file_…", "output_file_id": "file_…", "error_file_id": "file_…",
    "created_at": 1795337000, "ended_at": 1795338025
  }
}`;

export function BatchesSection() {
	const { config } = useSession();
	return (
		<>
			<p>
				{rich(
					"A file of requests, one a line, is worked through within a day when the models have room, where a <link>model</link> takes batches and at its rates for them. Code for OpenAI's files and batches works unchanged.",
					{ link: (inner) => <Link to="/models">{inner}</Link> },
				)}
			</p>
			<h2>{t("Start one")}</h2>
			<CodeBlock code={LINE} />
			<p>
				{rich("Drop the file on the page of batches, run {code}, or:", {
					code: <code>tollgate batch run FILE --model MODEL_ID</code>,
				})}
			</p>
			<CodeTabs snippets={batchSnippets(config.baseUrl)} />
			<h2>{t("What becomes of it")}</h2>
			<p>
				{rich(
					"Each line is answered and charged once at most, to the key that began the batch. Without credit it pauses, says so in {code}, and goes on after a top-up. Its answers are in the output file, in any order: find them by {code2}. What failed, or was not sent when a batch was cancelled or its day was over, is in the error file with the reason.",
					{ code: <code>paused</code>, code2: <code>custom_id</code> },
				)}
			</p>
			<h2>{t("Hear of its end")}</h2>
			<p>
				{rich(
					"An owner of the account may switch mails and a webhook on in the settings. The webhook is called with the type {code}, {code2}, {code3} or {code4}:",
					{
						code: <code>batch.completed</code>,
						code2: <code>batch.failed</code>,
						code3: <code>batch.expired</code>,
						code4: <code>batch.cancelled</code>,
					},
				)}
			</p>
			<CodeBlock code={EVENT} />
			<p>
				{rich(
					"It is signed after Standard Webhooks, in the headers {code}, {code2} and {code3}. Check the bytes as they came, with the secret of the settings:",
					{
						code: <code>webhook-id</code>,
						code2: <code>webhook-timestamp</code>,
						code3: <code>webhook-signature</code>,
					},
				)}
			</p>
			<CodeTabs snippets={WEBHOOK_SNIPPETS} />
			<p>
				{rich(
					"Answer with any status from 200 to 299 within ten seconds. Else it is called again for three days, ever more rarely; 410 ends that. The same event may arrive twice, with the same {code}.",
					{ code: <code>id</code> },
				)}
			</p>
		</>
	);
}
