/** Its client, or the balancer between, takes the next request elsewhere: the runtime closes the connection behind it. */
export async function lastAnswer(answer: Response | Promise<Response>): Promise<Response> {
	const response = await answer;
	response.headers.set("connection", "close");
	return response;
}
