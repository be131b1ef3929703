/* The floor under every HTTP server: one epoll loop, one read and one write a turn, a fixed answer for each blank line.
 * No parsing, no limits, no checks: what the kernel and loopback cost.
 *
 *     floor PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nhello, world";
enum { ANSWER_LEN = sizeof ANSWER - 1, IN = 1 << 16, MOST = 512, EVENTS = 512 };

static char in[IN], out[MOST * ANSWER_LEN];
/* How many bytes of the blank line a connection has already sent, by descriptor. */
static unsigned char state[1 << 16];

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    signal(SIGPIPE, SIG_IGN);
    for (int k = 0; k < MOST; k++) memcpy(out + k * ANSWER_LEN, ANSWER, ANSWER_LEN);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return perror("floor"), 1;
    int loop = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n_events = epoll_wait(loop, events, EVENTS, -1);
        for (int k = 0; k < n_events; k++) {
            int fd = events[k].data.fd;
            if (fd == listener) {
                int client;
                while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    if (client >= (int)sizeof state) { close(client); continue; }
                    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    state[client] = 0;
                    event.data.fd = client;
                    epoll_ctl(loop, EPOLL_CTL_ADD, client, &event);
                }
                continue;
            }
            ssize_t n_read = read(fd, in, IN);
            if (n_read <= 0) {
                if (n_read == 0 || (errno != EAGAIN && errno != EINTR)) close(fd);
                continue;
            }
            int n_answers = 0, matched = state[fd];
            for (ssize_t i = 0; i < n_read; i++) {
                matched = in[i] == "\r\n\r\n"[matched] ? matched + 1 : in[i] == '\r';
                if (matched == 4) n_answers++, matched = 0;
            }
            state[fd] = (unsigned char)matched;
            /* A client of the bench reads what it asked for: the socket takes it. */
            for (ssize_t left = (ssize_t)n_answers * ANSWER_LEN; left > 0;) {
                ssize_t n_now = left < (ssize_t)sizeof out ? left : (ssize_t)sizeof out;
                ssize_t written = write(fd, out, (size_t)n_now);
                if (written != n_now) { close(fd); break; }
                left -= written;
            }
        }
    }
}
