import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { batchSnippets, WEBHOOK_SNIPPETS } from "../snippets.ts";

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
				A file of requests, one a line, is worked through within a day when the models have room, where a{" "}
				<Link to="/models">model</Link> takes batches and at its rates for them. Code for OpenAI&apos;s files and
				batches works unchanged.
			</p>
			<h2>Start one</h2>
			<CodeBlock code={LINE} />
			<p>
				Drop the file on the page of batches, run <code>tollgate batch run FILE --model MODEL_ID</code>, or:
			</p>
			<CodeTabs snippets={batchSnippets(config.baseUrl)} />
			<h2>What becomes of it</h2>
			<p>
				Each line is answered and charged once at most, to the key that began the batch. Without credit it pauses, says
				so in <code>paused</code>, and goes on after a top-up. Its answers are in the output file, in any order: find
				them by <code>custom_id</code>. What failed, or was not sent when a batch was cancelled or its day was over, is
				in the error file with the reason.
			</p>
			<h2>Hear of its end</h2>
			<p>
				An owner of the account may switch mails and a webhook on in the settings. The webhook is called with the type{" "}
				<code>batch.completed</code>, <code>batch.failed</code>, <code>batch.expired</code> or{" "}
				<code>batch.cancelled</code>:
			</p>
			<CodeBlock code={EVENT} />
			<p>
				It is signed after Standard Webhooks, in the headers <code>webhook-id</code>, <code>webhook-timestamp</code> and{" "}
				<code>webhook-signature</code>. Check the bytes as they came, with the secret of the settings:
			</p>
			<CodeTabs snippets={WEBHOOK_SNIPPETS} />
			<p>
				Answer with any status from 200 to 299 within ten seconds. Else it is called again for three days, ever more
				rarely; 410 ends that. The same event may arrive twice, with the same <code>id</code>.
			</p>
		</>
	);
}
