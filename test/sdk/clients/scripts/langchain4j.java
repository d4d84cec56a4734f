import com.fasterxml.jackson.databind.ObjectMapper;
import dev.langchain4j.agent.tool.ToolSpecification;
import dev.langchain4j.data.message.ToolExecutionResultMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.json.JsonObjectSchema;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

class Client {
	static final String URL = System.getenv("OPENAI_BASE_URL");
	static final String KEY = System.getenv("OPENAI_API_KEY");
	static final String MODEL = System.getenv("MODEL");
	static final UserMessage QUESTION = UserMessage.from("What time is it in Paris?");
	static final OpenAiChatModel CHAT = OpenAiChatModel.builder().baseUrl(URL).apiKey(KEY).modelName(MODEL).build();

	static String stream() throws Exception {
		var model = OpenAiStreamingChatModel.builder().baseUrl(URL).apiKey(KEY).modelName(MODEL).build();
		var done = new CompletableFuture<ChatResponse>();
		model.chat(List.of(QUESTION), new StreamingChatResponseHandler() {
			@Override
			public void onPartialResponse(String text) {}

			@Override
			public void onCompleteResponse(ChatResponse response) {
				done.complete(response);
			}

			@Override
			public void onError(Throwable error) {
				done.completeExceptionally(error);
			}
		});
		var response = done.get();
		return response.aiMessage().text() + " " + response.finishReason() + " " + response.tokenUsage().outputTokenCount();
	}

	static String tool() {
		var schema = JsonObjectSchema.builder().addStringProperty("city").required("city").build();
		var tool = ToolSpecification.builder().name("get_time").description("The time.").parameters(schema).build();
		var message = CHAT.chat(ChatRequest.builder().messages(QUESTION).toolSpecifications(tool).build()).aiMessage();
		var call = message.toolExecutionRequests().get(0);
		var result = ToolExecutionResultMessage.from(call, "noon");
		var last = ChatRequest.builder().messages(QUESTION, message, result).toolSpecifications(tool).build();
		return call.arguments() + " " + CHAT.chat(last).aiMessage().text();
	}

	static void play(String name, Callable<String> run) throws Exception {
		String value;
		try {
			value = run.call();
		} catch (Exception error) {
			value = error.toString();
		}
		System.out.println("@@" + new ObjectMapper().writeValueAsString(List.of(name, value)));
	}

	public static void main(String[] args) throws Exception {
		play("chat", () -> CHAT.chat(QUESTION).aiMessage().text());
		play("stream", Client::stream);
		play("tool", Client::tool);
		System.exit(0);
	}
}
