/**
 * Adds `connection: close`, after which the runtime closes the connection and the client or balancer reconnects
 * elsewhere.
 */
export async function lastAnswer(answer: Response | Promise<Response>): Promise<Response> {
	const response = await answer;
	response.headers.set("connection", "close");
	return response;
}
